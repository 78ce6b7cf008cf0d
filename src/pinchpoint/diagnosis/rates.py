"""Counters and histograms over time: increase only within one rising run, each replica for itself, then summed.

Why runs: a counter that fell began anew, so nothing is known about that one interval, and everything about the rest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import TypeVar

from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading

T = TypeVar("T")
History = Sequence[tuple[float, ReplicaReading]]  # one replica's (time, reading), oldest first
Histories = Mapping[str, History]  # by replica


def known(value: float | None) -> float | None:
    """The value when it is a finite number, else ``None``: a NaN is no measurement."""
    return value if value is not None and isfinite(value) else None


def total(values: Sequence[float | None]) -> float | None:
    """Sum of what is known; ``None`` when nothing is."""
    numbers = _known(values)
    return known(sum(numbers)) if numbers else None


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of what is known; ``None`` when nothing is."""
    numbers = _known(values)
    return known(sum(numbers) / len(numbers)) if numbers else None


def ratio(part: float | None, whole: float | None) -> float | None:
    """``None`` where either is unknown or the whole is nothing."""
    part, whole = known(part), known(whole)
    return known(part / whole) if part is not None and whole is not None and whole > 0 else None


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and isfinite(value)]


def histories(readings: Sequence[EngineReading]) -> Histories:
    """Each replica's readings, oldest first."""
    found: dict[str, list[tuple[float, ReplicaReading]]] = {}
    for reading in readings:
        for replica in reading.replicas:
            found.setdefault(replica.replica, []).append((reading.at, replica))
    return found


def rate(every: Histories, pick: Callable[[ReplicaReading], float | None]) -> float | None:
    """Increase of a counter per second, summed over replicas; ``None`` when no replica shows two values in a row."""
    return total([_rate(history, pick) for history in every.values()])


def observed(every: Histories, pick: Callable[[ReplicaReading], Histogram | None]) -> Histogram | None:
    """What a histogram observed over the window, all replicas together; ``None`` when it can't be told."""
    together: Histogram | None = None
    for history in every.values():
        points = [(found.count, found) for _, replica in history if (found := pick(replica)) is not None]
        for (_, first), (_, last) in _rising(points):
            delta = last.since(first) if last is not first else None
            if delta is not None:
                together = delta if together is None else together.plus(delta) or together
    return together


def observed_mean(every: Histories, pick: Callable[[ReplicaReading], Histogram | None]) -> float | None:
    found = observed(every, pick)
    return known(found.mean) if found else None


def last_rise(every: Histories, pick: Callable[[ReplicaReading], float | None]) -> float | None:
    """When a counter was last seen higher than before, on any replica; ``None`` when it never was."""
    rises = []
    for history in every.values():
        newest_first = pairwise(reversed(_points(history, pick)))
        rises.append(next((at for (after, at), (before, _) in newest_first if after > before), None))
    return max((at for at in rises if at is not None), default=None)


def _points(history: History, pick: Callable[[ReplicaReading], float | None]) -> list[tuple[float, float]]:
    """(value, time)."""
    return [(value, at) for at, replica in history if (value := pick(replica)) is not None and isfinite(value)]


def _rate(history: History, pick: Callable[[ReplicaReading], float | None]) -> float | None:
    gained = seconds = 0.0
    for (first, since), (last, until) in _rising(_points(history, pick)):
        gained, seconds = gained + last - first, seconds + until - since
    return gained / seconds if seconds > 0 else None


def _rising(points: Sequence[tuple[float, T]]) -> Iterator[tuple[tuple[float, T], tuple[float, T]]]:
    """Cuts a series of (level, thing) wherever the level fell: the first and the last of each run."""
    if not points:
        return
    first = last = points[0]
    for point in points:
        if point[0] < last[0]:
            yield first, last
            first = point
        last = point
    yield first, last
