"""memory_growth: a card's memory climbs without KV demand.

Claims: the memory of one of the engine's cards will be full soon, and then the engine can't allocate and dies of it.
Decides: the slope of used memory over the readings since the engine's start (Theil and Sen), steady and beyond what
libraries allocate, reaches the card's end within ``memory_full_minutes``. An engine that tells its KV cache's usage has
reserved the whole pool at its start, so what climbs is something else: a neighbour, or a leak.
Supports: a process whose memory grows as much, and that is not the largest on the card.
Contradicted by: a step up that stays (something was loaded); an engine that has served nothing yet (it warms up).
It is for the time before anybody suffers: a class under which people suffer now comes first.
Fallback: where the engine has no KV gauge, its own cache may be what grows: at most 0.6. Without GPU memory readings
it abstains. Advice: find the process, or restart the engine before the card is full.
"""

from pinchpoint.diagnosis.clients import harm_of
from pinchpoint.diagnosis.judgement import Judgement, fact, gathered, percent
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence

_SCORE = 0.9
_UNSURE = 0.6  # the growth may have another reason, or people suffer from something else


def memory_growth(signals: Signals, thresholds: Thresholds) -> Judgement:
    growth = signals.growth
    full_in = growth.memory_full_in_seconds
    if full_in is None:
        unseen = signals.devices.gpus is None
        missing = ("gpu_memory_used_bytes",) if unseen else ()
        return Judgement(bottleneck=Bottleneck.MEMORY_GROWTH, score=None if unseen else 0.0, missing=missing)
    if full_in > 60.0 * thresholds.memory_full_minutes:
        return Judgement(bottleneck=Bottleneck.MEMORY_GROWTH, score=0.0)
    reserved = signals.load.kv_cache_usage_ratio is not None or growth.neighbour is True
    suffering = strain_of(signals, thresholds).any or (harm_of(signals, thresholds).degree or 0.0) >= 0.5
    certain = reserved and signals.devices.declared
    score = _SCORE if certain else 0.8 if reserved else _UNSURE
    return Judgement(
        bottleneck=Bottleneck.MEMORY_GROWTH,
        score=min(score, _UNSURE) if suffering else score,
        why=_why(signals),
        evidence=lambda: _evidence(signals, thresholds),
        missing=() if growth.memory_growth_process else ("gpu_processes",),
        gate=not suffering,
    )


def _why(signals: Signals) -> str:
    growth = signals.growth
    who = f", because of {growth.memory_growth_process}" if growth.memory_growth_process else ""
    return f"the memory of GPU {growth.memory_growth_gpu} climbs steadily and will soon be full{who}"


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    growth = signals.growth
    return gathered(
        fact(
            "memory_full_in_seconds",
            growth.memory_full_in_seconds,
            f"GPU {growth.memory_growth_gpu}: full in {{value}} at this pace, {{threshold}} is soon",
            _minutes,
            60.0 * thresholds.memory_full_minutes,
        ),
        fact(
            "memory_growth_bytes_per_second",
            growth.memory_growth_bytes_per_second,
            "its used memory gains {value} a minute",
            lambda rate: _gib(60.0 * rate),
        ),
        fact("memory_free_bytes", growth.memory_free_bytes, "{value} of it are free", _gib),
        fact(
            "memory_growth_process_share",
            growth.memory_growth_process_share,
            f"{growth.memory_growth_process} gained {{value}} of that",
            percent,
        ),
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 60 else f"{seconds:.0f} s"


def _gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
