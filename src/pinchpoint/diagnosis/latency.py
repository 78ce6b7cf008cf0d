"""What requests felt, as the engine measured it.

Two clocks: TTFT and inter-token latency are observed live, queue and prefill time when a request finishes. One is never
compared with the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.rates import histories, known, observed, observed_mean, rate, ratio, total
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, Histogram, Quantile

_OFF = 1.05


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
    inter_token_mean_seconds: float | None = None  # of all tokens
    tpot_judged_seconds: float | None = None  # what the objective is held against
    tpot_judged_by: str = "mean"  # of all tokens, or of the requests where theirs is longer
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
    whole, half = (observed(part, lambda replica: replica.ttft_seconds) for part in (every, newer))
    judged = _better(_judged(whole, thresholds), _judged(half, thresholds))
    ttft = judged.of if judged else None
    inter_token = observed(every, lambda replica: replica.inter_token_seconds)
    if inter_token is None:  # some engines say each request's mean alone, when it ends
        inter_token = observed(every, lambda replica: replica.tpot_seconds)
    requests = [observed(part, lambda replica: replica.tpot_seconds) for part in (every, newer)]
    if rate(every, lambda replica: replica.preemptions_total):
        requests = []  # the time of one that was put aside is the wait for memory, not the pace of steps
    tpot, tpot_by = _tpot(_mean(inter_token), requests, readings[-1].slo.tpot_seconds if readings else 0.0, thresholds)
    queue = observed_mean(every, lambda replica: replica.queue_seconds)
    prefill = observed_mean(every, lambda replica: replica.prefill_seconds)
    return Latency(
        ttft_observations=known(ttft.count) if ttft else None,
        ttft_mean_seconds=_mean(ttft),
        ttft_p50_seconds=_quantile(ttft, 0.50),
        ttft_p95_seconds=_quantile(ttft, 0.95),
        ttft_judged_seconds=judged.seconds if judged else None,
        ttft_judged_by=judged.by if judged else "mean",
        inter_token_mean_seconds=_mean(inter_token),
        tpot_judged_seconds=tpot,
        tpot_judged_by=tpot_by,
        inter_token_p50_seconds=_quantile(inter_token, 0.50),
        inter_token_p95_seconds=_quantile(inter_token, 0.95),
        inter_token_p99_seconds=_quantile(inter_token, 0.99),
        queue_mean_seconds=queue,
        prefill_mean_seconds=prefill,
        prefill_time_share=None if queue is None else ratio(prefill, total([queue, prefill])),
    )


def _tpot(
    tokens: float | None, requests: Sequence[Histogram | None], objective: float, thresholds: Thresholds
) -> tuple[float | None, str]:
    """The mean of all tokens, or what the requests say themselves where it is longer, as most tokens are of long
    answers: the mean of their means, or what all but a few keep where that is late. Of the window or its newer half,
    whichever is better."""
    told = []
    for histogram in requests:
        q = None if histogram is None else _judged_quantile(histogram.count, thresholds)
        if histogram is None or q is None:
            continue
        found = histogram.sharper_quantile(q)
        slow = _late(found, objective) or 0.0
        told.append(max((_mean(histogram) or 0.0, "mean of requests"), (slow, f"p{100 * q:.0f} of requests")))
    best = min(told, default=None)
    if best is None or (tokens is not None and best[0] <= tokens):
        return tokens, "mean"
    return best


def _late(found: Quantile | None, objective: float) -> float | None:
    """The quantile where it is late for sure, or by more than what a guess within a bucket may be off."""
    if found is None or found.at_least is None:
        return None
    value = found.at_least if found.value is None else found.value
    return value if found.at_least >= objective or value > _OFF * objective else None


def _better(whole: _Judged | None, newer: _Judged | None) -> _Judged | None:
    """A mean of few is below the p95 of the same requests, so it is no better for that."""
    if whole is None or newer is None:
        return whole or newer
    comparable = newer.by != "mean" or whole.by == "mean"
    return newer if comparable and newer.seconds < whole.seconds else whole


def _judged(ttft: Histogram | None, thresholds: Thresholds) -> _Judged | None:
    """All but one in twenty of many, all but one or two of fewer; the mean of few, and where all but a few are in the
    lowest bucket, so that a quantile has no number."""
    if ttft is None:
        return None
    q = _judged_quantile(ttft.count, thresholds)
    found = None if q is None else _quantile(ttft, q)
    if q is not None and found is not None and found.value is not None:
        return _Judged(found.value, f"p{100 * q:.0f}", ttft)
    if q is not None and found is not None and found.at_least is not None:
        return _Judged(found.at_least, f"p{100 * q:.0f} at least", ttft)
    mean = _mean(ttft)
    return None if mean is None else _Judged(mean, "mean", ttft)


def _judged_quantile(count: float, thresholds: Thresholds) -> float | None:
    if count >= thresholds.ttft_p95_observations:
        return 0.95
    return 1.0 - 1.5 / count if count >= thresholds.ttft_quantile_observations else None


def _mean(histogram: Histogram | None) -> float | None:
    return known(histogram.mean) if histogram else None


def _quantile(histogram: Histogram | None, q: float) -> Quantile | None:
    return histogram.quantile(q) if histogram else None
