"""What the window says about the last minutes of one engine: rates, latency quantiles, and points for a sparkline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis import rates
from pinchpoint.diagnosis.rates import Histories, histories, observed
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
    return rates.total([field(replica) for replica in reading.replicas])


def fullest(reading: EngineReading) -> float | None:
    """KV usage of the fullest replica: requests queue there, whatever room the others have."""
    return max((r.kv_cache_usage_ratio for r in reading.replicas if r.kv_cache_usage_ratio is not None), default=None)


def last_minute(readings: Sequence[EngineReading]) -> Histories:
    """Each replica's readings of the last minute, back to the newest restart."""
    return histories([r for r in readings if r.epoch == readings[-1].epoch and r.at >= readings[-1].at - RATE_SECONDS])


def latency(minute: Histories, field: Callable[[ReplicaReading], Histogram | None], slo_seconds: float) -> Latency:
    """Median and 95th percentile of what all replicas observed."""
    seen = observed(minute, field)
    return Latency(
        p50_seconds=seen.quantile(0.5) if seen else None,
        p95_seconds=seen.quantile(0.95) if seen else None,
        slo_seconds=slo_seconds,
    )


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
