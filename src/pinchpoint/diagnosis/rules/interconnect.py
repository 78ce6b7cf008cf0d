"""interconnect: tensor-parallel ranks wait for each other's data.

Claims: tokens, or first tokens, are late because each step's all-reduces go over a link that is too slow for them.
Decides: tensor parallelism; and the all-reduces of the actual model and steps, over the slowest pair's published link
at the efficiency that links reach, are a large part of the observed step. An all-reduce after each block moves
2 (n - 1) / n of the activations (a ring; Patarasuk and Yuan 2009).
Supports: pairs without peer-to-peer, PCIe traffic of the ranks, GPUs that are busy by NVML's word (a kernel that waits
for its peer is resident) and draw little power, steps that the GPU's own work explains badly.
Contradicted by: steps that computing and memory explain, GPUs at rest between steps (the host's), NVLink, one rank.
Fallback: with the links unknown, PCIe traffic and busy, cool GPUs say it, at most 0.6; else it abstains.
Advice: ranks on one NVLink domain or switch, a smaller group, replicas instead. A link that has trained down is
hardware.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def interconnect(signals: Signals, thresholds: Thresholds) -> Judgement:
    links, strain = signals.links, strain_of(signals, thresholds)
    if (links.tensor_parallel_size or 0.0) == 1.0:
        return Judgement(bottleneck=Bottleneck.INTERCONNECT, score=0.0)
    missing = missing_of(
        tensor_parallel_size=links.tensor_parallel_size,
        communication_share=links.communication_share,
        pcie_bytes_per_second=links.pcie_bytes_per_second,
    )
    by_model, by_traffic = _by_model(signals, thresholds), _by_traffic(signals, thresholds)
    if links.tensor_parallel_size is None or (by_model is None and by_traffic is None):
        return Judgement(bottleneck=Bottleneck.INTERCONNECT, score=None, missing=missing)
    degree = by_model if by_model is not None else 0.6 * (by_traffic or 0.0)
    degree *= _left_over(signals, thresholds)
    return Judgement(
        bottleneck=Bottleneck.INTERCONNECT,
        score=0.95 * degree * _enough(signals, strain) * (0.0 if signals.load.moved is False else 1.0),
        why="tensor-parallel ranks wait for each other's data in every step",
        evidence=(*_evidence(signals, thresholds), *strain.evidence),
        contradicted_by=_against(signals, thresholds),
        missing=missing,
    )


def _by_model(signals: Signals, thresholds: Thresholds) -> float | None:
    share = _share(signals)
    if share is None:
        return None
    return ramp(share, thresholds.communication_share_begins, thresholds.communication_share_certain)


def _share(signals: Signals) -> float | None:
    """Of the steps that are too slow: where first tokens alone are late, and no queue is why, of a prompt's."""
    links, prompt = signals.links, signals.links.communication_prompt_share
    only_prompts = signals.ttft.missed and not signals.inter_token.missed and not signals.load.queue_share
    return prompt if only_prompts and prompt is not None else links.communication_share


def _by_traffic(signals: Signals, thresholds: Thresholds) -> float | None:
    """Busy and cool GPUs, and much traffic over PCIe (0..1)."""
    traffic, devices = signals.links.pcie_bytes_per_second, signals.devices
    if traffic is None or devices.gpu_utilization_ratio is None or devices.gpu_power_ratio is None:
        return None
    busy = ramp(devices.gpu_utilization_ratio, 0.6, 0.85)
    cool = 1.0 - ramp(devices.gpu_power_ratio, 0.45, 0.7)
    return busy * cool * ramp(traffic, thresholds.pcie_traffic_bytes / 4, thresholds.pcie_traffic_bytes)


def _left_over(signals: Signals, thresholds: Thresholds) -> float:
    """What computing and memory leave of a step to anything else (0..1), and the host's gap of that."""
    explained, gap = signals.roofline.step_explained_ratio, signals.host.host_gap_ratio
    unexplained = 1.0 if explained is None else 1.0 - ramp(explained, 0.75, 1.0)
    hosts = 0.0 if gap is None else ramp(gap, thresholds.host_gap_certain, 2 * thresholds.host_gap_certain)
    return (0.3 + 0.7 * unexplained) * (1.0 - 0.7 * hosts)


def _enough(signals: Signals, strain: Strain) -> float:
    """Whether requests suffer from it: late tokens that would be on time without it, late first tokens, a queue."""
    judged, share = signals.inter_token.judged_seconds, signals.links.communication_share
    if strain.inter_token is not None and judged is not None:
        left = judged * (1.0 - min(0.9, share or 0.5))
        # Most of a step is most of what can be gained, in time or not.
        return 1.0 - 0.6 * ramp(ratio(left, signals.slo.tpot_seconds), 1.0, 1.5) * (1.0 - ramp(share, 0.35, 0.55))
    return strain.first_token if strain.any else 0.0


def _against(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    explained, gap = signals.roofline.step_explained_ratio, signals.host.host_gap_ratio
    return gathered(
        fact(
            "step_explained_ratio",
            explained if (explained or 0.0) > 0.75 else None,
            "computing and memory explain {value} of a step",
            percent,
        ),
        fact(
            "host_gap_ratio",
            gap if (gap or 0.0) > thresholds.host_gap_certain else None,
            "in {value} of a step no kernel runs, not even one that waits for a peer",
            percent,
        ),
    )


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    links, devices = signals.links, signals.devices
    through_host = links.link_without_p2p or None
    cool = devices.gpu_power_ratio is not None and devices.gpu_power_ratio < 0.6
    return gathered(
        fact(
            "communication_share",
            links.communication_share,
            f"all-reduces over {links.link_worst} take about {{value}} of a step"
            + (f" ({duration(links.communication_step_seconds)} at peak)" if links.communication_step_seconds else ""),
            percent,
            thresholds.communication_share_certain,
        ),
        fact(
            "link_without_p2p", through_host, "{value} pairs of its GPUs reach each other only through the host", _whole
        ),
        fact(
            "pcie_bytes_per_second",
            links.pcie_bytes_per_second if (links.pcie_bytes_per_second or 0.0) > 1e9 else None,
            "{value} of PCIe traffic on the busiest GPU",
            lambda rate: f"{rate / 1e9:.1f} GB/s",
        ),
        fact(
            "gpu_power_ratio",
            devices.gpu_power_ratio if cool and (devices.gpu_utilization_ratio or 0.0) > 0.7 else None,
            "the GPUs are busy and draw only {value} of their power limit: they wait",
            percent,
        ),
    )


def _whole(number: float) -> str:
    return f"{number:.0f}"
