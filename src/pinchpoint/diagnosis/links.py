"""How the cards of a tensor-parallel engine reach each other, and what that costs a step."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pinchpoint.diagnosis.devices import Devices
from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.rates import known, ratio
from pinchpoint.diagnosis.roofline import Machine, Roofline
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.physics import Link, communication_seconds, link_peak
from pinchpoint.snapshot import EngineReading, PeerLink, Snapshot

_PCIE, _THROUGH_HOST = ("PIX", "PXB", "PHB"), "NODE"
_FAR = (*_PCIE, _THROUGH_HOST, "SYS")
_IMPOSSIBLE = 1.1  # of an observed time, at peak


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Of the engine's own pairs of GPUs; ``None`` is unknown, or the engine has one GPU a replica.

    Shares reckon with the efficiency that links reach in practice; each is the part that a link without any delay would
    save, of a mean step and of the prefill of a mean prompt.
    """

    tensor_parallel_size: float | None = None
    link_worst: str = ""  # its label
    link_worst_bytes_per_second: float | None = None  # the slowest pair, published, as far as its PCIe link has trained
    link_without_p2p: float | None = None  # pairs that go through the host
    communication_step_seconds: float | None = None  # what the all-reduces of a mean step take over that link at peak
    communication_share: float | None = None  # of an observed step
    communication_prompt_share: float | None = None  # of an observed prefill
    pcie_bytes_per_second: float | None = None  # the busiest GPU, both directions


def links_of(
    snapshots: Sequence[Snapshot],
    current: EngineReading,
    machine: Machine | None,
    load: Load,
    latency: Latency,
    roofline: Roofline,
    devices: Devices,
    thresholds: Thresholds,
) -> Links:
    """Pairs within each replica: those of different replicas have nothing to say to each other."""
    size = current.facts.tensor_parallel_size
    if not size or size < 2 or not snapshots or not current.gpus:
        return Links(tensor_parallel_size=None if size is None else float(size))
    own = {frozenset(pair) for group in _groups(current, size) for pair in combinations(group, 2)}
    links = [link for link in snapshots[-1].links if frozenset((link.gpu, link.peer)) in own]
    label, peak = _worst(links, machine, devices.gpu_pcie_link_ratio)

    def seconds(tokens: float | None) -> float | None:
        if machine is None or peak is None or tokens is None:
            return None
        return known(communication_seconds(machine.shape, tokens, size, peak))

    step = seconds(load.step_tokens)
    prompt = seconds(ratio(load.prompt_tokens_per_second, load.requests_started_per_second))
    reached = thresholds.link_reached_ratio
    return Links(
        tensor_parallel_size=float(size),
        link_worst=label,
        link_worst_bytes_per_second=peak.bytes_per_second if peak else None,
        link_without_p2p=float(sum(not link.peer_to_peer for link in links)) if links else None,
        communication_step_seconds=step,
        communication_share=_share(step, roofline.step_seconds, reached),
        communication_prompt_share=_share(prompt, latency.prefill_mean_seconds, reached),
        pcie_bytes_per_second=max(
            (card.pcie_bytes_per_second for card in devices.cards if card.pcie_bytes_per_second is not None),
            default=None,
        ),
    )


def _share(at_peak: float | None, observed: float | None, reached: float) -> float | None:
    """Unknown too where it takes longer at peak than was observed: then the facts or the counts are wrong."""
    possible = at_peak is not None and observed is not None and at_peak <= _IMPOSSIBLE * observed
    return ratio(at_peak / reached, observed) if at_peak is not None and possible else None


def _groups(current: EngineReading, size: int) -> Iterable[Sequence[str]]:
    """The GPUs of each replica: as told, else in the order in which the engine has them."""
    told: Mapping[str, tuple[str, ...]] = {r: gpus for r, gpus in current.gpus_by_replica.items() if r}
    if told:
        return told.values()
    return [current.gpus[first : first + size] for first in range(0, len(current.gpus), size)]


def _worst(links: Iterable[PeerLink], machine: Machine | None, trained: float | None) -> tuple[str, Link | None]:
    """The label and the peak of the slowest pair; without a known card the label alone.

    ``trained`` is what the cards' PCIe links run at, of their best. A pair without peer-to-peer goes through the host,
    whatever switch it sits on.
    """
    ways = {(link.link, link.link if link.peer_to_peer or link.link not in _PCIE else _THROUGH_HOST) for link in links}
    if machine is None:
        return max((label for label, _ in ways), key=_distance, default=""), None
    peaks = [(peak, label) for label, way in ways if (peak := link_peak(way, machine.gpu))]
    if not peaks:
        return "", None
    peak, label = min(peaks, key=lambda pair: (pair[0].bytes_per_second, -pair[0].latency_seconds))
    if trained is not None and 0.0 < trained < 1.0 and not is_nvlink(label):
        peak = replace(peak, bytes_per_second=peak.bytes_per_second * trained)
    return label, peak


def is_nvlink(label: str) -> bool:
    return label.startswith("NV")


def _distance(label: str) -> int:
    """NVLink is nearest; of words that are not known nothing is said."""
    return _FAR.index(label) if label in _FAR else -1
