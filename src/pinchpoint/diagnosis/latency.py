"""What requests felt, as the engine measured it.

Two clocks: TTFT and inter-token latency are observed live, queue and prefill time when a request finishes. One is never
compared with the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.rates import histories, known, observed
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, Histogram, Quantile


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """What was observed within the window, all replicas together. ``None`` is unknown, or nothing was observed.

    TTFT is that of the window or of its newer half, whichever is better: a slowness that is over stops counting soon.
    """

    ttft_observations: float | None = None
    ttft_mean_seconds: float | None = None
    ttft_p50_seconds: Quantile | None = None
    ttft_p95_seconds: Quantile | None = None
    ttft_judged_seconds: float | None = None
    ttft_judged_by: str = "mean"  # p95, or the mean of few
    inter_token_mean_seconds: float | None = None  # what the objective is held against
    inter_token_p50_seconds: Quantile | None = None
    inter_token_p95_seconds: Quantile | None = None
    inter_token_p99_seconds: Quantile | None = None
    queue_mean_seconds: float | None = None  # finished requests, like the next two
    prefill_mean_seconds: float | None = None
    prefill_time_share: float | None = None  # prefill over queue and prefill


@dataclass(frozen=True, slots=True)
class _Judged:
    seconds: float
    by: str
    of: Histogram


def latency_of(readings: Sequence[EngineReading], thresholds: Thresholds) -> Latency:
    """Latencies of one engine from the scrapes of one epoch, oldest first."""
    every = histories(readings)
    newer = histories(readings[len(readings) // 2 :])
    parts = (observed(part, lambda replica: replica.ttft_seconds) for part in (every, newer))
    judged = min(
        (found for part in parts if (found := _judged(part, thresholds)) is not None),
        key=lambda found: found.seconds,
        default=None,
    )
    ttft = judged.of if judged else None
    inter_token = observed(every, lambda replica: replica.inter_token_seconds)
    if inter_token is None:  # some engines say each request's mean alone, when it ends
        inter_token = observed(every, lambda replica: replica.tpot_seconds)
    queue = _mean(observed(every, lambda replica: replica.queue_seconds))
    prefill = _mean(observed(every, lambda replica: replica.prefill_seconds))
    return Latency(
        ttft_observations=known(ttft.count) if ttft else None,
        ttft_mean_seconds=_mean(ttft),
        ttft_p50_seconds=_quantile(ttft, 0.50),
        ttft_p95_seconds=_quantile(ttft, 0.95),
        ttft_judged_seconds=judged.seconds if judged else None,
        ttft_judged_by=judged.by if judged else "mean",
        inter_token_mean_seconds=_mean(inter_token),
        inter_token_p50_seconds=_quantile(inter_token, 0.50),
        inter_token_p95_seconds=_quantile(inter_token, 0.95),
        inter_token_p99_seconds=_quantile(inter_token, 0.99),
        queue_mean_seconds=queue,
        prefill_mean_seconds=prefill,
        prefill_time_share=(
            prefill / (queue + prefill) if queue is not None and prefill is not None and queue + prefill > 0 else None
        ),
    )


def _judged(ttft: Histogram | None, thresholds: Thresholds) -> _Judged | None:
    """The p95 of many; the mean of few, and where all but a few are in the lowest bucket, so that p95 has no number."""
    if ttft is None:
        return None
    p95 = _quantile(ttft, 0.95) if ttft.count >= thresholds.ttft_p95_observations else None
    if p95 is not None and p95.value is not None:
        return _Judged(p95.value, "p95", ttft)
    if p95 is not None and p95.at_least is not None:
        return _Judged(p95.at_least, "p95 at least", ttft)
    mean = _mean(ttft)
    return None if mean is None else _Judged(mean, "mean", ttft)


def _mean(histogram: Histogram | None) -> float | None:
    return known(histogram.mean) if histogram else None


def _quantile(histogram: Histogram | None, q: float) -> Quantile | None:
    return histogram.quantile(q) if histogram else None
