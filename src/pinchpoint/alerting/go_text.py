"""Numbers in words, as Go and Prometheus' template functions write them (Go's strconv; Prometheus' template.go)."""

import math
from collections.abc import Callable
from decimal import Decimal

_ABOVE_ONE = ("k", "M", "G", "T", "P", "E", "Z", "Y")
_BELOW_ONE = ("m", "u", "n", "p", "f", "a", "z", "y")


def plain(value: float) -> str:
    """A number as ``{{ $value }}`` shows it: the fewest digits that mean it, with an exponent from 1e+06 on."""
    if not math.isfinite(value):
        return _not_finite(value)
    shortest = Decimal(repr(float(value)))
    sign, digits, _ = shortest.as_tuple()
    exponent = shortest.adjusted() if value else 0
    if -4 <= exponent < 6:
        return f"{shortest.normalize() if value else shortest.quantize(Decimal(1)):f}"
    text = "".join(map(str, digits)).rstrip("0")
    return f"{'-' * sign}{text[0]}{'.' * (len(text) > 1)}{text[1:]}e{exponent:+03d}"


def formatted(value: float, how: str) -> str:
    """The number as a verb of ``printf`` tells, given without its ``%`` (``.2f``): as in C, but for infinity."""
    if not math.isfinite(value):
        return _not_finite(value)
    return f"%{how}" % value


def humanize(value: float) -> str:
    """Four digits and a prefix of 1000 (``1.234k``, ``12m``)."""
    if value == 0 or not math.isfinite(value):
        return formatted(value, ".4g")
    return _prefixed(value, 1000, _ABOVE_ONE) if abs(value) >= 1 else _small(value)


def humanize_1024(value: float) -> str:
    """Four digits and a prefix of 1024 (``1.5Gi``)."""
    if abs(value) <= 1 or not math.isfinite(value):
        return formatted(value, ".4g")
    return _prefixed(value, 1024, tuple(f"{prefix}i" for prefix in _ABOVE_ONE))


def humanize_percentage(value: float) -> str:
    """A ratio in percent, four digits."""
    return formatted(value * 100, ".4g") + "%"


def humanize_duration(value: float) -> str:
    """Seconds in days, hours, minutes and whole seconds; below a minute four digits, below a second with a prefix."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0 or 1 <= abs(value) < 60:
        return formatted(value, ".4g") + "s"
    if abs(value) < 1:
        return _small(value) + "s"
    whole = int(abs(value))
    parts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    first = next(number for number, (count, _) in enumerate(parts) if count)
    return "-" * (value < 0) + " ".join(f"{count}{unit}" for count, unit in parts[first:])


HUMANIZED: dict[str, Callable[[float], str]] = {
    "humanize": humanize,
    "humanize1024": humanize_1024,
    "humanizePercentage": humanize_percentage,
    "humanizeDuration": humanize_duration,
}


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{'-' if value < 0 else '+'}Inf"


def _prefixed(value: float, base: float, prefixes: tuple[str, ...]) -> str:
    used = ""
    for prefix in prefixes:
        if abs(value) < base:
            break
        used, value = prefix, value / base
    return formatted(value, ".4g") + used


def _small(value: float) -> str:
    used = ""
    for prefix in _BELOW_ONE:
        if abs(value) >= 1:
            break
        used, value = prefix, value * 1000
    return formatted(value, ".4g") + used
