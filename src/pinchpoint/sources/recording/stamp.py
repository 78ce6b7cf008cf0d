"""What a recorder says of a scrape in a comment on its first line: when it was made, or why there is none.

The comment is one to any reader of the text format, and a scrape without it was made at its step.
"""

import json
from dataclasses import dataclass

from pinchpoint.snapshot import Reason

MARK = b"# pinchpoint "
MAX_DETAIL = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """``at`` is in seconds from the start of the recording. ``absent`` is why there is no scrape."""

    at: float
    absent: Reason | None = None
    detail: str = ""


def read_stamp(body: bytes) -> Stamp | None:
    """The stamp of a scrape, ``None`` where it has none that makes sense."""
    line, _, _ = body.partition(b"\n")
    if not line.startswith(MARK):
        return None
    try:
        said = json.loads(line.removeprefix(MARK))
        at, absent = float(said["at"]), said.get("absent")
        reason = None if absent is None else Reason(absent)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None
    if not abs(at) <= 1e12:  # nor NaN
        return None
    detail = "".join(filter(str.isprintable, str(said.get("detail", ""))[:MAX_DETAIL]))
    return Stamp(at=at, absent=reason, detail=detail)
