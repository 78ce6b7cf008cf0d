"""interconnect: tensor-parallel ranks wait for each other's data.

Claims: tokens, or first tokens, are late because each step's all-reduces go over a link that is too slow for them.
Decides: tensor parallelism; and the all-reduces of the actual model and steps, over the slowest pair's published link
at the efficiency that links reach, are a large part of the observed step. An all-reduce after each block moves
2 (n - 1) / n of the activations (a ring; Patarasuk and Yuan 2009).
Supports: pairs without peer-to-peer, PCIe traffic of the ranks, GPUs that are busy by NVML's word (a kernel that waits
for its peer is resident) and draw little power, steps that the GPU's own work explains badly.
Contradicted by: steps that computing and memory explain, GPUs at rest between steps (the host's), NVLink, one rank.
Fallback: with the links unknown, PCIe traffic and busy, cool GPUs say it, at most 0.6; without these, steps that the
GPU's own work does not explain make it a suspicion, at most 0.4, which is never named; else it abstains.
Advice: peer-to-peer, ranks on one NVLink domain or switch, replicas or stages instead. A link that has trained down is
hardware.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.links import is_nvlink
from pinchpoint.diagnosis.pace import explained_at_clock, late_anyway
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
    by_model, by_traffic = _by_model(signals, strain, thresholds), _by_traffic(signals, thresholds)
    degree = by_model if by_model is not None else _scaled(0.6, by_traffic)
    degree = degree if degree is not None else _scaled(0.4, _unexplained(signals, thresholds))
    if links.tensor_parallel_size is None or degree is None:
        return Judgement(bottleneck=Bottleneck.INTERCONNECT, score=None, missing=missing)
    degree *= _left_over(signals, thresholds) * (1.0 - 0.6 * late_anyway(signals, strain, thresholds))
    return Judgement(
        bottleneck=Bottleneck.INTERCONNECT,
        score=0.95 * degree * strain.suffering * (0.0 if signals.load.moved is False else 1.0),
        why="tensor-parallel ranks wait for each other's data in every step",
        evidence=lambda: (*_evidence(signals, strain, thresholds), *strain.evidence),
        contradicted_by=_against(signals, thresholds),
        missing=missing,
    )


def _scaled(most: float, degree: float | None) -> float | None:
    return None if degree is None else most * degree


def _unexplained(signals: Signals, thresholds: Thresholds) -> float | None:
    """How much of a step is something else than the GPU's own work (0..1): of several ranks perhaps their links."""
    explained = explained_at_clock(signals, thresholds)
    return None if explained is None else 1.0 - ramp(explained, 0.3, 0.6)


def _by_model(signals: Signals, strain: Strain, thresholds: Thresholds) -> float | None:
    share = _share_that_matters(signals, strain)
    if share is None:
        return None
    return ramp(share, thresholds.communication_share_begins, thresholds.communication_share_certain)


def _share_that_matters(signals: Signals, strain: Strain) -> float | None:
    """Late tokens and a queue are the work of all steps; late first tokens without a queue of the prompts' alone."""
    links = signals.links
    return links.communication_prompt_share if _of_prompts_alone(signals, strain) else links.communication_share


def _of_prompts_alone(signals: Signals, strain: Strain) -> bool:
    return strain.first_token_alone and signals.links.communication_prompt_share is not None


def _by_traffic(signals: Signals, thresholds: Thresholds) -> float | None:
    """Busy and cool GPUs, and much traffic over PCIe (0..1)."""
    traffic, devices = signals.links.pcie_bytes_per_second, signals.devices
    if traffic is None or devices.gpu_utilization_ratio is None or devices.gpu_power_ratio is None:
        return None
    if is_nvlink(signals.links.link_worst):
        return 0.0
    busy = ramp(devices.gpu_utilization_ratio, 0.6, 0.85)
    cool = 1.0 - ramp(devices.gpu_power_ratio, 0.45, 0.7)
    return busy * cool * ramp(traffic, thresholds.pcie_traffic_bytes / 4, thresholds.pcie_traffic_bytes)


def _left_over(signals: Signals, thresholds: Thresholds) -> float:
    """What computing and memory leave of a step (0..1), less the host's gap, and what a link that is ill adds."""
    explained, gap = explained_at_clock(signals, thresholds), signals.host.host_gap_ratio
    unexplained = 1.0 if explained is None else 1.0 - ramp(explained, 0.75, 1.0)
    hosts = 0.0 if gap is None else ramp(gap, thresholds.host_gap_certain, 2 * thresholds.host_gap_certain)
    trained = 1.0 if is_nvlink(signals.links.link_worst) else signals.devices.gpu_pcie_link_ratio
    ill = 0.2 if trained is not None and trained < 1.0 else 0.0  # a link below its own best is the hardware's
    return (0.3 + 0.7 * unexplained) * (1.0 - 0.7 * hosts) * (1.0 - ill)


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


def _evidence(signals: Signals, strain: Strain, thresholds: Thresholds) -> tuple[Evidence, ...]:
    links, devices = signals.links, signals.devices
    of_prompts, through_host = _of_prompts_alone(signals, strain), links.link_without_p2p or None
    at_peak = links.communication_step_seconds
    cool = devices.gpu_power_ratio is not None and devices.gpu_power_ratio < 0.6
    return gathered(
        fact(
            "communication_share",
            None if of_prompts else links.communication_share,
            f"all-reduces over {links.link_worst} take about {{value}} of a step"
            + (f" ({duration(at_peak)} at the link's peak)" if at_peak else ""),
            percent,
            thresholds.communication_share_certain,
        ),
        fact(
            "communication_prompt_share",
            links.communication_prompt_share if of_prompts else None,
            f"all-reduces over {links.link_worst} take about {{value}} of a prompt's prefill",
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
