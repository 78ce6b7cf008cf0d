"""Files of a recording, within limits."""

import json
from collections.abc import Iterator
from pathlib import Path

from pinchpoint.sources.recording.failure import RecordingError

MAX_FILE_BYTES = 256 * 2**20  # gpu.jsonl of eight GPUs: about two days at one line a second
MAX_LINE_BYTES = 2**20
MAX_DIGITS = 20  # a 64-bit counter

Json = dict[str, object]


def read_bytes(path: Path, max_bytes: int) -> bytes:
    """The whole file. Raises ``RecordingError`` when it can't be read or is larger than ``max_bytes``."""
    if path.is_fifo():  # opening it would wait for a writer
        raise RecordingError(path, "can't be read (it is a pipe); check that it is a readable file")
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise RecordingError(path, f"can't be read ({error.strerror}); check that it is a readable file") from None
    if len(content) > max_bytes:
        raise RecordingError(path, f"is larger than {max_bytes} bytes; is it the right file?")
    return content


def read_object(path: Path) -> Json:
    """A JSON file that holds one object."""
    return _object(path, read_bytes(path, MAX_LINE_BYTES * 4), None)


def read_objects(path: Path) -> Iterator[tuple[int, Json]]:
    """Each line of a JSON Lines file with its number; an empty line is skipped."""
    for number, line in enumerate(read_bytes(path, MAX_FILE_BYTES).split(b"\n"), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise RecordingError(path, f"longer than {MAX_LINE_BYTES} bytes; write one object a line", line=number)
        if line.strip():
            yield number, _object(path, line, number)


def _object(path: Path, text: bytes, line: int | None) -> Json:
    # NaN, Infinity and numbers of dozens of digits are no readings: they become null, which is unknown.
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        cause = getattr(error, "msg", None) or type(error).__name__
        raise RecordingError(path, f"is no JSON ({cause}); repair or remove it", line=line) from None
    if not isinstance(value, dict):
        raise RecordingError(path, f'holds a {type(value).__name__}, not an object like {{"t": 0}}', line=line)
    return value


def _whole(text: str) -> int | None:
    return int(text) if len(text) <= MAX_DIGITS else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if abs(value) < 10**MAX_DIGITS else None
