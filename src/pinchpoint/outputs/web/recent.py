"""What the window says about the last minutes of one engine: rates, latency quantiles, and points for a sparkline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading, Window

RATE_SECONDS = 60.0  # long enough for a p95 of an engine that finishes one request a second
HISTORY_SECONDS = 300.0
STEP_SECONDS = 5.0

Field = Callable[[ReplicaReading], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Quantiles of the last minute against the objective. ``None``: nothing was observed."""

    p50_seconds: float | None
    p95_seconds: float | None
    slo_seconds: float

    @property
    def over_slo(self) -> bool:
        return self.p95_seconds is not None and self.p95_seconds > self.slo_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One value per ``step_seconds``, oldest first, the last one now; ``None`` where nothing was known."""

    step_seconds: float
    kv_cache_usage_ratio: tuple[float | None, ...]
    requests_running: tuple[float | None, ...]
    requests_waiting: tuple[float | None, ...]


def total(reading: EngineReading, field: Field) -> float | None:
    """The sum over replicas of what is known; ``None`` when no replica says it."""
    known = [value for replica in reading.replicas if (value := field(replica)) is not None]
    return sum(known) if known else None


def fullest(reading: EngineReading) -> float | None:
    """KV usage of the fullest replica: requests queue there, whatever room the others have."""
    return max((r.kv_cache_usage_ratio for r in reading.replicas if r.kv_cache_usage_ratio is not None), default=None)


def span(readings: Sequence[EngineReading]) -> tuple[EngineReading, EngineReading] | None:
    """The first and last reading of the last minute within one epoch: between them counters only rise."""
    if not readings:
        return None
    last = readings[-1]
    first = next(r for r in readings if r.epoch == last.epoch and r.at >= last.at - RATE_SECONDS)
    return (first, last) if first.at < last.at else None


def rate(between: tuple[EngineReading, EngineReading] | None, field: Field) -> float | None:
    """Increase per second of a counter, summed over replicas; ``None`` without two readings or on a reset."""
    if between is None:
        return None
    first, last = between
    before, after = total(first, field), total(last, field)
    if before is None or after is None or after < before:
        return None
    return (after - before) / (last.at - first.at)


def latency(
    between: tuple[EngineReading, EngineReading] | None,
    field: Callable[[ReplicaReading], Histogram | None],
    slo_seconds: float,
) -> Latency:
    """Median and 95th percentile of what all replicas observed between two readings."""
    observed = _observed(between, field)
    return Latency(
        p50_seconds=observed.quantile(0.5) if observed else None,
        p95_seconds=observed.quantile(0.95) if observed else None,
        slo_seconds=slo_seconds,
    )


def _observed(
    between: tuple[EngineReading, EngineReading] | None, field: Callable[[ReplicaReading], Histogram | None]
) -> Histogram | None:
    if between is None:
        return None
    before = {replica.replica: field(replica) for replica in between[0].replicas}
    now = ((replica.replica, field(replica)) for replica in between[1].replicas)
    new = [delta for key, h in now if h is not None and (delta := h.since(before.get(key))) is not None]
    return reduce(lambda a, b: a.plus(b) or a, new) if new else None


def history(window: Window, engine: str) -> History:
    """Five minutes of one engine. A step holds the highest value seen in it, so no short peak is lost."""
    end = window.snapshots[-1].at if window.snapshots else 0.0
    steps: list[list[EngineReading]] = [[] for _ in range(int(HISTORY_SECONDS / STEP_SECONDS))]
    for snapshot in window.snapshots:
        back = int((end - snapshot.at) / STEP_SECONDS)
        if back < len(steps) and (reading := snapshot.engine(engine)) is not None:
            steps[-1 - back].append(reading)
    return History(
        step_seconds=STEP_SECONDS,
        kv_cache_usage_ratio=tuple(_highest(map(fullest, step)) for step in steps),
        requests_running=tuple(_highest(total(r, lambda x: x.requests_running) for r in step) for step in steps),
        requests_waiting=tuple(_highest(total(r, lambda x: x.requests_waiting) for r in step) for step in steps),
    )


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
