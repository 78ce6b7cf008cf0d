"""Functions over a range of samples, as Prometheus 3 defines them (promql/functions.go)."""

import math
from collections.abc import Callable
from itertools import pairwise
from operator import ne

from pinchpoint.alerting.promql.quantiles import quantile
from pinchpoint.alerting.track import Window

Over = Callable[[Window], float | None]  # ``None``: the series is not in the result


def rate(window: Window) -> float | None:
    """The increase per second."""
    found = increase(window)
    return None if found is None else found / ((window.end - window.start) / 1000)


def increase(window: Window) -> float | None:
    """How much a counter grew, extrapolated to the whole range, but not to below 0 at its start."""
    resets = window.track.resets
    grown = _last(window) - _first(window) + resets[window.high - 1] - resets[window.low]
    return _extrapolated(window, grown, is_counter=True)


def delta(window: Window) -> float | None:
    """By how much a gauge changed, extrapolated to the whole range."""
    return _extrapolated(window, _last(window) - _first(window), is_counter=False)


def deriv(window: Window) -> float | None:
    """The slope per second of the line through the samples (least squares)."""
    return _line(window, window.track.times[window.low])[0] if len(window) > 1 else None


def predict_linear(window: Window, now_ms: int, seconds: float) -> float | None:
    """Where the line through the samples is ``seconds`` from ``now``."""
    if len(window) < 2:
        return None
    slope, intercept = _line(window, now_ms)
    return slope * seconds + intercept


def resets(window: Window) -> float:
    """How often a counter fell."""
    values = window.values
    return float(sum(after < before for before, after in pairwise(values)))


def changes(window: Window) -> float:
    """How often the value became another; from NaN to NaN is no change."""
    values = window.values
    both_nan = sum(before != before and after != after for before, after in pairwise(values))
    return float(sum(map(ne, values, values[1:])) - both_nan)


def avg_over_time(window: Window) -> float:
    """The mean of the samples."""
    return sum(window.values) / len(window)


def max_over_time(window: Window) -> float:
    """The highest sample; NaN only if all are."""
    return max(_numbers(window), default=math.nan)


def min_over_time(window: Window) -> float:
    """The lowest sample; NaN only if all are."""
    return min(_numbers(window), default=math.nan)


def quantile_over_time(window: Window, share: float) -> float:
    """The quantile ``share`` (0..1) of the samples."""
    return quantile(share, window.values)


OVER: dict[str, Over] = {
    "rate": rate,
    "increase": increase,
    "delta": delta,
    "deriv": deriv,
    "resets": resets,
    "changes": changes,
    "avg_over_time": avg_over_time,
    "max_over_time": max_over_time,
    "min_over_time": min_over_time,
    "sum_over_time": lambda window: float(sum(window.values)),
    "count_over_time": lambda window: float(len(window)),
    "last_over_time": lambda window: window.track.values[window.high - 1],
    "present_over_time": lambda _: 1.0,
}


def _first(window: Window) -> float:
    return window.track.values[window.low]


def _last(window: Window) -> float:
    return window.track.values[window.high - 1]


def _numbers(window: Window) -> list[float]:
    return [value for value in window.values if not math.isnan(value)]


def _extrapolated(window: Window, grown: float, *, is_counter: bool) -> float | None:
    """``grown`` between the first sample and the last, as it would be from one end of the range to the other.

    A series whose first sample is further from the start than usual between samples is thought to have begun half
    that before it, likewise at the end.
    """
    if len(window) < 2:
        return None
    first, last = window.track.times[window.low], window.track.times[window.high - 1]
    sampled = (last - first) / 1000
    between = sampled / (len(window) - 1)
    to_start, to_end = (first - window.start) / 1000, (window.end - last) / 1000
    if to_start >= between * 1.1:
        to_start = between / 2
    if is_counter and grown > 0 and _first(window) >= 0:
        to_start = min(to_start, sampled * (_first(window) / grown))
    if to_end >= between * 1.1:
        to_end = between / 2
    return grown * ((sampled + to_start + to_end) / sampled)


def _line(window: Window, at_ms: int) -> tuple[float, float]:
    """Slope per second and value at that time of the line of least squares; from the middle, to keep all digits."""
    xs, ys = [(time - at_ms) / 1000 for time in window.times], window.values
    if ys.count(ys[0]) == len(ys):
        return (math.nan, math.nan) if math.isinf(ys[0]) else (0.0, ys[0])
    middle = sum(xs) / len(xs)
    rise = sum((x - middle) * (y - ys[0]) for x, y in zip(xs, ys, strict=True))
    slope = rise / sum((x - middle) ** 2 for x in xs)
    mean = ys[0] + sum(y - ys[0] for y in ys) / len(ys)
    return slope, mean - slope * middle
