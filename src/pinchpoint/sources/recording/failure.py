"""The one error of this room."""

from pathlib import Path


class RecordingError(Exception):
    """A recording that can't be read. The message is one line that names file, cause and remedy."""

    def __init__(self, path: Path, cause: str, *, line: int | None = None) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {cause}")
