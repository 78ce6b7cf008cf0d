"""memory_bandwidth: decode is at what the cards' memory can deliver.

Claims: tokens are late, or requests queue that could only run at the cost of late tokens, because each step reads the
weights and the KV cache of all running requests, and the memory does not read faster.
Decides: the mean time between tokens misses its objective (or would, if all who wait ran), and steps take as long as
their bytes: at the usual 0.75 of the published bandwidth these explain most of the observed step, and they take longer
than the step's FLOPs (roofline of the actual shapes; Williams et al. 2009). Real decode reaches 0.5 to 0.85 of the
bandwidth, and stays bound by it at large batches (arXiv 2503.08311). Without model or card measured DRAM activity says
it.
Certain: decode of the running requests, without any prompt between, takes longer than a token may. Then this is as fast
as this card goes, whatever else the steps hold.
Contradicted by: steps whose time is compute, tensor cores at work, no progress. NVML's memory-controller utilisation
is a share of time and supports nothing.
Fallback: DRAM activity alone, or model and card alone; without either, or the time between tokens, it abstains.
Advice: fewer requests at once, fp8 KV cache, smaller weights, then replicas or ranks.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered, missing_of, percent
from pinchpoint.diagnosis.pace import (
    gains_by_more_running,
    late_anyway,
    late_if_admitted,
    memory_duty,
    paced_by_memory,
)
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def memory_bandwidth(signals: Signals, thresholds: Thresholds) -> Judgement:
    roofline, strain = signals.roofline, strain_of(signals, thresholds)
    missing = missing_of(
        gpu_dram_active_ratio=signals.devices.gpu_dram_active_ratio,
        roofline_step_seconds=roofline.roofline_step_seconds,
        inter_token_mean_seconds=signals.latency.inter_token_mean_seconds,
    )
    paced = paced_by_memory(signals, thresholds)
    if paced is None or signals.latency.inter_token_mean_seconds is None:
        return Judgement(bottleneck=Bottleneck.MEMORY_BANDWIDTH, score=None, missing=missing)
    best = late_anyway(signals, strain, thresholds)
    score = max(_suffering(signals, strain) * paced, 0.95 * best) * (0.0 if signals.load.moved is False else 1.0)
    share = roofline.roofline_compute_share
    return Judgement(
        bottleneck=Bottleneck.MEMORY_BANDWIDTH,
        score=score if signals.devices.gpu_dram_active_ratio is not None else 0.95 * score,
        why=_why(strain, at_the_limit=_beyond_the_objective(signals)),
        evidence=lambda: (*_evidence(signals, thresholds), *strain.evidence),
        contradicted_by=gathered(
            fact(
                "roofline_compute_share",
                share if (share or 0.0) > thresholds.compute_share_begins else None,
                "computing takes {value} of a step's time",
                percent,
                thresholds.compute_share_certain,
            )
        ),
        missing=missing,
    )


def _suffering(signals: Signals, strain: Strain) -> float:
    """Late tokens, or a queue that can't be admitted without making them late. Any queue is worked off as quickly as
    steps go, so what paces them is at least next in line; so it is where tokens are only just on time."""
    at_their_cost = late_if_admitted(signals) * (1.0 - 0.6 * gains_by_more_running(signals))
    next_in_line = 0.2 * max(strain.queue, strain.nearly)
    return max(float(strain.inter_token is not None), 0.9 * strain.queue * at_their_cost, next_in_line)


def _beyond_the_objective(signals: Signals) -> bool:
    """Whether the bytes alone take longer than a token may, even at peak."""
    return (signals.roofline.decode_roofline_seconds or 0.0) > signals.slo.tpot_seconds


def _why(strain: Strain, *, at_the_limit: bool) -> str:
    if strain.inter_token is None:
        return "requests queue, and running more of them at once would make tokens late: memory paces decode"
    limit = ", and no engine could be on time on these cards" if at_the_limit else ""
    return f"tokens are late because reading weights and KV cache takes as long as memory allows{limit}"


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    roofline, measured = signals.roofline, signals.devices.gpu_dram_active_ratio
    expected = memory_duty(signals) if measured is None else None
    return gathered(
        fact(
            "gpu_dram_active_ratio",
            measured,
            "memory moves bytes {value} of the time, decode at its limit shows {threshold} and more",
            percent,
            thresholds.bandwidth_certain,
        ),
        fact(
            "memory_bandwidth_utilization_ratio",
            expected,
            "weights and KV cache are read at {value} of the published bandwidth; {threshold} and more is its limit",
            percent,
            thresholds.bandwidth_certain,
        ),
        fact(
            "roofline_step_seconds",
            roofline.roofline_step_seconds,
            f"at peak a step of this batch takes {{value}}, observed {duration(roofline.step_seconds or 0.0)}",
            duration,
        ),
        fact(
            "inter_token_if_admitted_seconds",
            roofline.inter_token_if_admitted_seconds if signals.load.requests_waiting else None,
            "with all who wait running, a token would take {value}, objective {threshold}",
            duration,
            signals.slo.tpot_seconds,
        ),
    )
