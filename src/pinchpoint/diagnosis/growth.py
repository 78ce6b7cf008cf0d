"""Device memory that climbs without KV demand: vLLM reserves its pool at start, so what grows is something else."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from pinchpoint.diagnosis.rates import known
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, GpuReading, Snapshot, Window

_POINTS = 24  # a slope needs no more, and all pairs of them are looked at
_FEWEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Of the card that will be full first; ``None`` is unknown, or nothing grows."""

    memory_growth_bytes_per_second: float | None = None
    memory_growth_gpu: str = ""
    memory_free_bytes: float | None = None
    memory_full_in_seconds: float | None = None  # at this pace
    memory_growth_process: str = ""  # whose memory grew most, where the card tells its processes
    memory_growth_process_share: float | None = None  # of what the card gained
    neighbour: bool | None = None  # that is not the one that holds most, the engine


def growth_of(window: Window, engine: EngineReading, since: float, thresholds: Thresholds) -> Growth:
    """The pace of each of the engine's cards since ``since`` (its start): Theil and Sen's slope over the newer half.

    A step up is far from any slope, as is noise. Nothing before the first token: until then weights load and kernels
    warm up.
    """
    if not window.snapshots or not _has_served(engine):
        return Growth()
    first = bisect_left(window.snapshots, since, key=lambda snapshot: snapshot.at)
    every = window.snapshots[first:]
    gained = _gained(every, engine.gpus, thresholds) if every else frozenset()
    if not gained:  # as nearly always
        return Growth()
    chosen = [every[round(n * (len(every) - 1) / (_POINTS - 1))] for n in range(_POINTS)]
    cards: dict[str, dict[float, GpuReading]] = {}
    for snapshot in chosen:
        for gpu in snapshot.gpus:
            if gpu.uuid in gained and gpu.up and known(gpu.memory_used_bytes) is not None:
                cards.setdefault(gpu.uuid, {})[gpu.at] = gpu
    found = [
        growth
        for card in cards.values()
        if (growth := _growth([card[at] for at in sorted(card)], thresholds)) is not None
    ]
    soonest = min(found, key=lambda growth: growth.memory_full_in_seconds or 0.0, default=None)
    return soonest or Growth()


def _gained(every: Sequence[Snapshot], own: Sequence[str], thresholds: Thresholds) -> frozenset[str]:
    """The engine's cards that hold more than they did."""
    before = {gpu.uuid: gpu.memory_used_bytes or 0.0 for gpu in every[0].gpus}
    return frozenset(
        gpu.uuid
        for gpu in every[-1].gpus
        if (not own or gpu.gpu in own)
        and (gpu.memory_used_bytes or 0.0) - before.get(gpu.uuid, 0.0) >= thresholds.memory_growth_bytes
    )


def _has_served(engine: EngineReading) -> bool:
    made = [r.generation_tokens_total for r in engine.replicas if r.generation_tokens_total is not None]
    return any(tokens > 0 for tokens in made) if made else True


def _growth(card: Sequence[GpuReading], thresholds: Thresholds) -> Growth | None:
    last, points = card[-1], [(gpu.at, gpu.memory_used_bytes or 0.0) for gpu in card]
    newer, total = points[len(points) // 2 :], known(last.memory_total_bytes)
    gained = points[-1][1] - points[0][1]
    # On unified memory the system's own pages count too.
    if last.memory_model == "unified" or total is None or len(newer) < _FEWEST:
        return None
    if points[-1][0] - points[0][0] < thresholds.memory_growth_seconds or gained < thresholds.memory_growth_bytes:
        return None
    slope = median((b - a) / (t - s) for (s, a), (t, b) in combinations(newer, 2))
    climbed = slope * (newer[-1][0] - newer[0][0])
    if climbed < max(thresholds.memory_growth_bytes / 2, thresholds.memory_growth_noise_times * _noise(newer, slope)):
        return None
    free = max(0.0, total - points[-1][1] - (last.memory_reserved_bytes or 0.0))
    who, grew, neighbour = _grower(card[0], last)
    return Growth(
        memory_growth_bytes_per_second=slope,
        memory_growth_gpu=last.gpu,
        memory_free_bytes=free,
        memory_full_in_seconds=known(free / slope),
        memory_growth_process=who,
        memory_growth_process_share=min(1.0, grew / gained) if grew is not None else None,
        neighbour=neighbour,
    )


def _noise(points: Sequence[tuple[float, float]], slope: float) -> float:
    """The standard deviation about the slope, by the median of the absolute deviations (1.48 times, if normal)."""
    rest = [used - slope * at for at, used in points]
    middle = median(rest)
    return 1.48 * median(abs(one - middle) for one in rest)


def _grower(before: GpuReading, after: GpuReading) -> tuple[str, float | None, bool | None]:
    """The process that gained most; one that is new has gained all it has."""
    had = {process.pid: process.memory_bytes or 0.0 for process in before.processes}
    gained = [(p.memory_bytes - had.get(p.pid, 0.0), p) for p in after.processes if p.memory_bytes is not None]
    grew, process = max(gained, key=lambda pair: pair[0], default=(0.0, None))
    if process is None or grew <= 0:
        return "", None, None
    most = max(had, key=lambda pid: had[pid], default=None)
    return f"{process.command or 'a process'} (pid {process.pid})", grew, process.pid != most
