"""Published peaks of the cards that serve LLMs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

MIB = 2**20
# One direction of one lane, after encoding (8b/10b, from 3 on 128b/130b): PCI-SIG, PCI Express Base Specification.
_PCIE_LANE_BYTES_PER_SECOND: Mapping[float, float] = {
    1: 0.25e9,
    2: 0.5e9,
    3: 0.985e9,
    4: 1.969e9,
    5: 3.938e9,
    6: 7.563e9,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One card as its maker describes it. A peak is what no workload exceeds, not what one reaches.

    ``name`` is the driver's product name (``nvidia-smi -L``). ``memory_bytes`` is the total that the driver reports
    with ECC on, which differs a little from the number on the box. ``bf16_flops`` and ``fp8_flops`` are the dense
    tensor-core peaks: data sheets that print a figure "with sparsity" are halved here; ``fp8_flops`` is ``None`` where
    the tensor cores know no FP8. ``nvlink_bytes_per_second`` is both directions of all ``nvlinks`` together, as data
    sheets print it; ``None``: the card has none. ``gpm``: NVML's profiling counters exist (Hopper and later).
    ``source`` names the public document of the figures.
    """

    name: str
    memory_bytes: float
    bandwidth_bytes_per_second: float
    bf16_flops: float
    tdp_watts: float
    boost_clock_hertz: float
    source: str
    fp8_flops: float | None = None
    pcie_generation: int = 4
    pcie_lanes: int = 16
    nvlink_bytes_per_second: float | None = None
    nvlinks: int = 0
    gpm: bool = False

    @property
    def pcie_bytes_per_second(self) -> float:
        """One direction of the card's PCIe link."""
        return _PCIE_LANE_BYTES_PER_SECOND[self.pcie_generation] * self.pcie_lanes


def _gpu(  # one row of the table below, in the units of a data sheet
    name: str,
    mib: int,
    gb_per_second: float,
    tflops: float,
    fp8_tflops: float | None,
    watts: float,
    mhz: float,
    pcie: int,
    nvlink: tuple[float, int] | None,
    gpm: bool,
    source: str,
) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=float(mib * MIB),
        bandwidth_bytes_per_second=gb_per_second * 1e9,
        bf16_flops=tflops * 1e12,
        fp8_flops=None if fp8_tflops is None else fp8_tflops * 1e12,
        tdp_watts=watts,
        boost_clock_hertz=mhz * 1e6,
        pcie_generation=pcie,
        nvlink_bytes_per_second=nvlink[0] * 1e9 if nvlink else None,
        nvlinks=nvlink[1] if nvlink else 0,
        gpm=gpm,
        source=source,
    )


# fmt: off
GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        # name, MiB, GB/s, bf16 and FP8 TFLOP/s, W, MHz, PCIe generation, NVLink (GB/s, links), GPM, source
        _gpu("NVIDIA A10", 23028, 600, 125, None, 150, 1695, 4, None, False,
             "NVIDIA A10 Tensor Core GPU datasheet"),
        _gpu("NVIDIA L4", 23034, 300, 121, 242, 72, 2040, 4, None, False,
             "NVIDIA L4 Tensor Core GPU datasheet"),
        _gpu("NVIDIA L40S", 46068, 864, 362, 733, 350, 2520, 4, None, False,
             "NVIDIA L40S GPU datasheet"),
        _gpu("NVIDIA A100-SXM4-40GB", 40960, 1555, 312, None, 400, 1410, 4, (600, 12), False,
             "NVIDIA A100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA A100-SXM4-80GB", 81920, 2039, 312, None, 400, 1410, 4, (600, 12), False,
             "NVIDIA A100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA A800-SXM4-80GB", 81920, 2039, 312, None, 400, 1410, 4, (400, 8), False,
             "NVIDIA A800 80GB product brief"),
        _gpu("NVIDIA H100 80GB HBM3", 81559, 3350, 989.5, 1979, 700, 1980, 5, (900, 18), True,
             "NVIDIA H100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA H200", 143771, 4800, 989.5, 1979, 700, 1980, 5, (900, 18), True,
             "NVIDIA H200 Tensor Core GPU datasheet"),
        _gpu("NVIDIA B200", 183359, 8000, 2250, 4500, 1000, 1965, 5, (1800, 18), True,
             "NVIDIA DGX B200 datasheet, per GPU"),
    )
}
# fmt: on


def pcie_bytes_per_second(generation: float, lanes: float) -> float | None:
    """One direction of a PCIe link; ``None`` for a generation that is not known."""
    lane = _PCIE_LANE_BYTES_PER_SECOND.get(generation)
    return None if lane is None else lane * lanes


def gpu_by_name(name: str) -> Gpu | None:
    """The card with this driver name; ``None`` when no peaks are known for it (never a guess at a similar card)."""
    return GPUS.get(name)


def slice_of(gpu: Gpu, numerator: int, denominator: int, memory_ratio: float | None = None) -> Gpu:
    """A MIG instance with this share of the card's SMs, and of its memory where ``memory_ratio`` says no other:
    ``3g.40gb`` of an 80 GB card is 3 of 7 and 0.5. Its power is the card's by SMs; it has no NVLink, as MIG has no
    peer-to-peer (NVIDIA MIG user guide)."""
    sms = numerator / denominator
    memory = sms if memory_ratio is None else memory_ratio
    return replace(
        gpu,
        memory_bytes=gpu.memory_bytes * memory,
        bandwidth_bytes_per_second=gpu.bandwidth_bytes_per_second * memory,
        bf16_flops=gpu.bf16_flops * sms,
        fp8_flops=None if gpu.fp8_flops is None else gpu.fp8_flops * sms,
        tdp_watts=gpu.tdp_watts * sms,
        nvlink_bytes_per_second=None,
        nvlinks=0,
    )
