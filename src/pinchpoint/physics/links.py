"""What a link between two cards can do, by the word of ``nvidia-smi topo -m``."""

from dataclasses import dataclass

from pinchpoint.physics.gpus import Gpu

# A ring all-reduce of a few bytes between two cards: 6.6 µs and two hops (NCCL src/graph/tuning.cc, protocol LL).
_BASE_SECONDS, _NVLINK_HOP_SECONDS, _PCIE_HOP_SECONDS = 6.6e-6, 0.6e-6, 1.0e-6
# An Intel host splits peer-to-peer traffic into small packets, a fifth more of them (NCCL src/graph/topo.h).
_HOST_BRIDGE_OVERHEAD = 6 / 5
_SOCKETS_BYTES_PER_SECOND = 22e9  # between two CPU sockets of Sapphire Rapids (SRP_QPI_BW, NCCL src/graph/topo.h)


@dataclass(frozen=True, slots=True)
class Link:
    """One direction at its peak, and what one small all-reduce between two cards takes at least."""

    bytes_per_second: float
    latency_seconds: float


def link_peak(label: str, gpu: Gpu) -> Link | None:
    """The peak of a link between two such cards; ``None`` for a word that is not known, or NVLink on a card without.

    - ``NV4``: so many NVLinks of the card.
    - ``PIX``, ``PXB`` (PCIe switches): the card's PCIe link.
    - ``PHB`` (a CPU's host bridge): the same, less the host's overhead.
    - ``NODE`` (two host bridges of a CPU): through host memory, as NCCL does without peer-to-peer: half of it.
    - ``SYS`` (two CPUs): that, at most what passes between the sockets.
    """
    if label.startswith("NV") and label[2:].isdecimal():
        if not gpu.nvlink_bytes_per_second or not gpu.nvlinks:
            return None
        links = min(int(label[2:]), gpu.nvlinks)
        return Link(links * gpu.nvlink_bytes_per_second / (2 * gpu.nvlinks), _BASE_SECONDS + 2 * _NVLINK_HOP_SECONDS)
    pcie, two_hops = gpu.pcie_bytes_per_second, _BASE_SECONDS + 2 * _PCIE_HOP_SECONDS
    four_hops = two_hops + 2 * _PCIE_HOP_SECONDS  # each one into host memory and out of it
    return {
        "PIX": Link(pcie, two_hops),
        "PXB": Link(pcie, two_hops),
        "PHB": Link(pcie / _HOST_BRIDGE_OVERHEAD, two_hops),
        "NODE": Link(pcie / 2, four_hops),
        "SYS": Link(min(pcie / 2, _SOCKETS_BYTES_PER_SECOND), four_hops),
    }.get(label)
