"""The one error of this room."""

from pathlib import Path


class RecordingError(Exception):
    """A recording that can't be read. The message is one line that names file, cause and remedy."""

    def __init__(self, path: Path, cause: str, *, line: int | None = None) -> None:
        words = f"{path}{'' if line is None else f', line {line}'}: {cause}"
        super().__init__("".join(each if each.isprintable() else "?" for each in words))  # names hold line ends
