"""Writes a generated file for a command, and says so."""

from pathlib import Path

from pinchpoint.cli.exits import fail


def write(file: Path, text: str) -> None:
    """Writes ``file``, its folder too, and prints its path; ends the command with one line when it can't."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(f"{file}: can't be written: {error.strerror or error}; name a folder that you may write to")
    print(file)
