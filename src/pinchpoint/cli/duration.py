"""Durations as Prometheus writes them: ``30d``, ``1h30m``, ``15s``."""

import re

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_PART = re.compile(r"(\d{1,6})([wdhms])")


def seconds_of(text: str) -> int:
    """Raises ``ValueError``."""
    parts = _PART.findall(text)
    if not parts or "".join(map("".join, parts)) != text:
        raise ValueError(f"{text!r} is no duration; write it like 30d, 12h or 1h30m")
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def duration_of(seconds: float) -> str:
    """Its two largest units."""
    left, parts = round(seconds), []
    for unit, size in list(_SECONDS.items())[1:]:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
