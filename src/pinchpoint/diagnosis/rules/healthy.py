"""healthy: requests run, and nobody suffers.

Claims: TTFT (p95, or the mean of few) and the mean time between tokens are within the objectives, no queue lasts, no
request is preempted steadily. Supports: all four known. Contradicted by any strain. A KV cache at 95 % with nothing
waiting is healthy: it is memory in use. Fallback: with the latency histograms missing the score is lower and says so;
with the queue unknown too, it abstains. Advice: none.
"""

from pinchpoint.diagnosis.judgement import Judgement, count, duration, fact, gathered, missing_of, percent
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def healthy(signals: Signals, thresholds: Thresholds) -> Judgement:
    load, latency = signals.load, signals.latency
    strain = strain_of(signals, thresholds)
    preempting = (load.preemptions_per_second or 0.0) >= thresholds.preemptions_per_second
    if load.moved is False:  # idle, or stuck
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=0.0)
    if strain.any or preempting:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=0.0, contradicted_by=strain.evidence)
    missing = missing_of(
        requests_waiting=load.requests_waiting,
        ttft_judged_seconds=latency.ttft_judged_seconds,
        inter_token_mean_seconds=latency.inter_token_mean_seconds,
    )
    if load.requests_waiting is None and latency.ttft_judged_seconds is None:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=None, missing=missing)
    evidence = _evidence(signals)
    return Judgement(
        bottleneck=Bottleneck.HEALTHY,
        score=1.0 - 0.15 * len(missing),
        why="; ".join(fact.text for fact in evidence) or "nothing waits",
        evidence=evidence,
        missing=missing,
        gate=True,
    )


def _evidence(signals: Signals) -> tuple[Evidence, ...]:
    load, latency, slo = signals.load, signals.latency, signals.slo
    inter_token = latency.inter_token_mean_seconds
    within = "within {threshold}"
    return gathered(
        fact("ttft_judged_seconds", latency.ttft_judged_seconds, "TTFT {value} " + within, duration, slo.ttft_seconds),
        fact("inter_token_mean_seconds", inter_token, "{value} between tokens " + within, duration, slo.tpot_seconds),
        fact("requests_waiting", load.requests_waiting, "{value} requests waiting", count),
        fact("kv_cache_usage_ratio", load.kv_cache_usage_ratio, "KV cache at {value}", percent),
    )
