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
        points = [(at, found) for at, replica in history if (found := pick(replica)) is not None]
        for run in _rising(points, lambda histogram: histogram.count):
            delta = run[-1][1].since(run[0][1])
            if delta is not None and len(run) > 1:
                together = delta if together is None else together.plus(delta) or together
    return together


def observed_mean(every: Histories, pick: Callable[[ReplicaReading], Histogram | None]) -> float | None:
    found = observed(every, pick)
    return known(found.mean) if found else None


def last_rise(every: Histories, pick: Callable[[ReplicaReading], float | None]) -> float | None:
    """When a counter was last seen higher than before, on any replica; ``None`` when it never was."""
    rises = [
        at
        for history in every.values()
        for (_, before), (at, after) in pairwise(_points(history, pick))
        if after > before
    ]
    return max(rises, default=None)


def _points(history: History, pick: Callable[[ReplicaReading], float | None]) -> list[tuple[float, float]]:
    return [(at, value) for at, replica in history if (value := known(pick(replica))) is not None]


def _rate(history: History, pick: Callable[[ReplicaReading], float | None]) -> float | None:
    runs = [run for run in _rising(_points(history, pick), lambda value: value) if len(run) > 1]
    seconds = sum(run[-1][0] - run[0][0] for run in runs)
    return sum(run[-1][1] - run[0][1] for run in runs) / seconds if seconds > 0 else None


def _rising(points: Sequence[tuple[float, T]], level: Callable[[T], float]) -> Iterator[list[tuple[float, T]]]:
    """Cuts a series wherever its level fell."""
    run: list[tuple[float, T]] = []
    for point in points:
        if run and level(point[1]) < level(run[-1][1]):
            yield run
            run = []
        run.append(point)
    if run:
        yield run
