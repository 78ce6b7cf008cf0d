"""PCIe traffic from the driver's byte counters, without NVML's call that blocks for 20 ms."""

from collections.abc import Callable, Mapping

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.nvml import FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier, number

COUNTERS = {"pcie_transmit_bytes_per_second": 197, "pcie_receive_bytes_per_second": 198}  # NVML_FI_DEV_PCIE_COUNT_*
# Bytes per second and lane by generation (PCI-SIG's transfer rates less the encoding).
LANE_BYTES_PER_SECOND = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_rate = number(highest=1e12)


class PcieRates:
    """Differences of the counters, over their wraps.

    A counter that the link could fill in less than the time between two readings says nothing: then there is no rate.
    """

    tier = Tier.FAST
    fields = tuple(COUNTERS.values())

    def __init__(self, nvml: NvmlGpu, clock: Callable[[], float]) -> None:
        self._nvml, self._clock = nvml, clock
        self._last: dict[int, tuple[float, float]] = {}  # field -> when, count

    def read(self, _at: float, fields: FieldAnswers, so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """One rate per direction; ``STARTING`` where there is one count only."""
        now = self._clock()
        most = _most_bytes_per_second(so_far)
        return {name: self._rate(field, fields[field], now, most) for name, field in COUNTERS.items()}

    def _rate(self, field: int, count: float | Reason, now: float, most: float | None) -> Answer:
        before = self._last.pop(field, None)
        if isinstance(count, Reason):
            return count
        self._last[field] = now, count
        if before is None or now <= before[0]:
            return Reason.STARTING
        seconds, more = now - before[0], count - before[1]
        modulus = 1 << self._nvml.bits[field]
        if modulus < 2**64:
            if most is None or most * seconds >= modulus:
                return Reason.NOT_SUPPORTED
            more %= modulus
        return Reason.STARTING if more < 0 else _rate(more / seconds)  # a wide counter that fell began anew


def _most_bytes_per_second(so_far: Mapping[str, Answer]) -> float | None:
    generation, lanes = so_far.get("pcie_link_generation_max"), so_far.get("pcie_link_width_max")
    lane = LANE_BYTES_PER_SECOND.get(int(generation)) if isinstance(generation, float) else None
    return lane * lanes if lane is not None and isinstance(lanes, float) else None
