"""How the cards of a tensor-parallel engine reach each other, and what that costs a step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.rates import known, mean, ratio, total
from pinchpoint.diagnosis.roofline import Machine, Roofline
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.physics import Link, communication_seconds, link_peak
from pinchpoint.snapshot import EngineReading, GpuReading, PeerLink, Snapshot

_P2P = ("", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Of the engine's own pairs of GPUs; ``None`` is unknown, or the engine has one GPU a replica.

    ``communication_share`` reckons with the efficiency that links reach in practice; it is the part of an observed step
    that a link without any delay would save.
    """

    tensor_parallel_size: float | None = None
    link_worst: str = ""  # its label
    link_worst_bytes_per_second: float | None = None  # the slowest pair, published
    link_without_p2p: float | None = None  # pairs that go through the host
    communication_step_seconds: float | None = None  # what the all-reduces of a mean step take over that link at peak
    communication_share: float | None = None  # of an observed step
    communication_prompt_share: float | None = None  # the same of a mean prompt's prefill, where that is measured
    pcie_bytes_per_second: float | None = None  # the busiest GPU, both directions


def links_of(
    snapshots: Sequence[Snapshot],
    current: EngineReading,
    machine: Machine | None,
    load: Load,
    latency: Latency,
    roofline: Roofline,
    thresholds: Thresholds,
) -> Links:
    """Pairs within each replica: those of different replicas have nothing to say to each other."""
    size = current.facts.tensor_parallel_size
    if not size or size < 2 or not snapshots or not current.gpus:
        return Links(tensor_parallel_size=None if size is None else float(size))
    own = {frozenset(pair) for group in _groups(current, size) for pair in combinations(group, 2)}
    links = [link for link in snapshots[-1].links if frozenset((link.gpu, link.peer)) in own]
    worst, peak = _worst(links, machine)
    seconds = None
    if machine is not None and peak is not None and load.step_tokens is not None:
        seconds = known(communication_seconds(machine.shape, load.step_tokens, size, peak))
    usual = None if seconds is None else seconds / thresholds.link_reached_ratio
    return Links(
        tensor_parallel_size=float(size),
        link_worst=worst,
        link_worst_bytes_per_second=peak.bytes_per_second if peak else None,
        link_without_p2p=float(sum(link.p2p not in _P2P for link in links)) if links else None,
        communication_step_seconds=seconds,
        communication_share=ratio(usual, roofline.step_seconds),
        communication_prompt_share=_of_a_prompt(machine, peak, load, latency, size, thresholds),
        pcie_bytes_per_second=_traffic(snapshots, current.gpus),
    )


def _of_a_prompt(
    machine: Machine | None, peak: Link | None, load: Load, latency: Latency, size: int, thresholds: Thresholds
) -> float | None:
    tokens = ratio(load.prompt_tokens_per_second, load.requests_started_per_second)
    if machine is None or peak is None or not tokens:
        return None
    seconds = communication_seconds(machine.shape, tokens, size, peak) / thresholds.link_reached_ratio
    return ratio(seconds, latency.prefill_mean_seconds)


def _groups(current: EngineReading, size: int) -> Iterable[Sequence[str]]:
    """The GPUs of each replica: as told, else in the order in which the engine has them."""
    told: Mapping[str, tuple[str, ...]] = {r: gpus for r, gpus in current.gpus_by_replica.items() if r}
    if told:
        return told.values()
    return [current.gpus[first : first + size] for first in range(0, len(current.gpus), size)]


def _worst(links: Iterable[PeerLink], machine: Machine | None) -> tuple[str, Link | None]:
    """The label and the peak of the slowest pair, as far as its card's peaks are known."""
    if machine is None:
        return "", None
    peaks = [(peak, label) for label in {each.link for each in links} if (peak := link_peak(label, machine.gpu))]
    if not peaks:
        return "", None
    peak, label = min(peaks, key=lambda pair: (pair[0].bytes_per_second, -pair[0].latency_seconds))
    return label, peak


def _traffic(snapshots: Sequence[Snapshot], gpus: Sequence[str]) -> float | None:
    found: dict[str, dict[float, GpuReading]] = {}
    for snapshot in snapshots:
        for gpu in snapshot.gpus:
            if gpu.gpu in gpus:
                found.setdefault(gpu.gpu, {})[gpu.at] = gpu
    means = [mean([_both_ways(gpu) for gpu in readings.values()]) for readings in found.values()]
    return max((value for value in means if value is not None), default=None)


def _both_ways(gpu: GpuReading) -> float | None:
    return total([gpu.pcie_receive_bytes_per_second, gpu.pcie_transmit_bytes_per_second])
