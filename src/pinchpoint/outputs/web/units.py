"""Numbers for people. A space that does not break stands between number and unit; unknown is an en dash."""

from pinchpoint.snapshot import Quantile

UNKNOWN = "–"
NBSP = "\N{NO-BREAK SPACE}"


def ratio(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value * 100:.0f}{NBSP}%"


def count(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:,.0f}"


def latency(seconds: float | None) -> str:
    """Three digits: 8.31 ms, 42.0 ms, 240 ms, 1.24 s, 12.4 s, 124 s."""
    if seconds is None:
        return UNKNOWN
    value, unit = (seconds, "s") if seconds >= 0.9995 else (seconds * 1000, "ms")
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}{NBSP}{unit}"


def quantile(found: Quantile | None) -> str:
    """A latency; where its bucket has one edge only, the bound that it is: ≤ 10.0 ms, > 80.0 s."""
    if found is None or found.value is not None:
        return latency(found.value if found else None)
    return f"≤{NBSP}{latency(found.at_most)}" if found.at_most is not None else f">{NBSP}{latency(found.at_least)}"


def duration(seconds: float) -> str:
    """The two largest units: 42 s, 3 min 20 s, 2 h 5 min, 3 d 4 h."""
    whole = max(0, int(seconds))
    for size, unit, smaller, smaller_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{NBSP}{unit}" + (f" {rest}{NBSP}{smaller_unit}" if rest else "")
    return f"{whole}{NBSP}s"


def gibibytes(used: float | None, total: float | None) -> str:
    shown = [UNKNOWN if value is None else f"{value / 2**30:.1f}" for value in (used, total)]
    return f"{shown[0]} / {shown[1]}{NBSP}GiB"


def watts(used: float | None, limit: float | None) -> str:
    return f"{count(used)} / {count(limit)}{NBSP}W"


def celsius(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0f}{NBSP}°C"
