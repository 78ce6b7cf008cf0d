"""What the window says about the last minutes of one engine: rates, and points for a sparkline."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from pinchpoint.diagnosis import rates
from pinchpoint.diagnosis.rates import Histories, histories
from pinchpoint.snapshot import EngineReading, ReplicaReading, Window

RATE_SECONDS = 60.0  # long enough for an engine that finishes one request a second
HISTORY_SECONDS = 300.0
SHORT_HISTORY_SECONDS = 60.0
GROWTH_SECONDS = 30.0  # by which a short history grows, so that its axis does not change with every tick
STEP_SECONDS = 5.0

Field = Callable[[ReplicaReading], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """One value per ``step_seconds``, oldest first, the last one now; ``None`` where nothing was known."""

    step_seconds: float
    span_seconds: float
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


def history(window: Window, engine: str) -> History:
    """What there is of one engine, one minute at least and five at most.

    A step holds the highest value seen in it, so no short peak is lost.
    """
    seen = [(s.at, reading) for s in window.snapshots if (reading := s.engine(engine)) is not None]
    end = window.snapshots[-1].at if window.snapshots else 0.0
    watched = end - seen[0][0] if seen else 0.0
    span = min(HISTORY_SECONDS, max(SHORT_HISTORY_SECONDS, GROWTH_SECONDS * ceil(watched / GROWTH_SECONDS)))
    steps: list[list[EngineReading]] = [[] for _ in range(int(span / STEP_SECONDS))]
    for at, reading in seen:
        back = int((end - at) / STEP_SECONDS)
        if back < len(steps) and not (steps[-1 - back] and steps[-1 - back][-1] is reading):  # one scrape, many ticks
            steps[-1 - back].append(reading)
    return History(
        step_seconds=STEP_SECONDS,
        span_seconds=span,
        kv_cache_usage_ratio=tuple(_highest(map(fullest, step)) for step in steps),
        requests_running=tuple(_highest(total(r, lambda x: x.requests_running) for r in step) for step in steps),
        requests_waiting=tuple(_highest(total(r, lambda x: x.requests_waiting) for r in step) for step in steps),
    )


def _highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
