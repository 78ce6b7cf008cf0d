"""What requests felt, as the engine measured it.

Two clocks: TTFT and inter-token latency are observed live, queue and prefill time when a request finishes. One is never
compared with the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.rates import histories, known, observed
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """What was observed within the window, all replicas together. ``None`` is unknown, or nothing was observed."""

    ttft_observations: float | None = None
    ttft_mean_seconds: float | None = None
    ttft_p95_seconds: float | None = None
    ttft_judged_seconds: float | None = None  # p95, or the mean of few; of the window or its newer half, the better
    inter_token_mean_seconds: float | None = None
    inter_token_p50_seconds: float | None = None
    inter_token_p99_seconds: float | None = None
    queue_mean_seconds: float | None = None  # finished requests, like the next two
    prefill_mean_seconds: float | None = None
    prefill_time_share: float | None = None  # prefill over queue and prefill


def latency_of(readings: Sequence[EngineReading], thresholds: Thresholds) -> Latency:
    """Latencies of one engine from the scrapes of one epoch, oldest first."""
    every = histories(readings)
    newer = histories(readings[len(readings) // 2 :])
    ttft = observed(every, lambda replica: replica.ttft_seconds)
    inter_token = observed(every, lambda replica: replica.inter_token_seconds)
    queue = _mean(observed(every, lambda replica: replica.queue_seconds))
    prefill = _mean(observed(every, lambda replica: replica.prefill_seconds))
    return Latency(
        ttft_observations=known(ttft.count) if ttft else None,
        ttft_mean_seconds=_mean(ttft),
        ttft_p95_seconds=_quantile(ttft, 0.95),
        ttft_judged_seconds=_judged(ttft, observed(newer, lambda replica: replica.ttft_seconds), thresholds),
        inter_token_mean_seconds=_mean(inter_token),
        inter_token_p50_seconds=_quantile(inter_token, 0.50),
        inter_token_p99_seconds=_quantile(inter_token, 0.99),
        queue_mean_seconds=queue,
        prefill_mean_seconds=prefill,
        prefill_time_share=(
            prefill / (queue + prefill) if queue is not None and prefill is not None and queue + prefill > 0 else None
        ),
    )


def _judged(whole: Histogram | None, newer: Histogram | None, thresholds: Thresholds) -> float | None:
    """The newer half is looked at too, so that a slowness that is over stops counting soon."""
    judged = []
    for ttft in (whole, newer):
        many = ttft is not None and ttft.count >= thresholds.ttft_p95_observations
        judged.append(_quantile(ttft, 0.95) if many else _mean(ttft))
    return min((seconds for seconds in judged if seconds is not None), default=None)


def _mean(histogram: Histogram | None) -> float | None:
    return known(histogram.mean) if histogram else None


def _quantile(histogram: Histogram | None, q: float) -> float | None:
    return known(histogram.quantile(q)) if histogram else None
