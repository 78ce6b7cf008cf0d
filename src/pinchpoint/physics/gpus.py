"""Published peaks of the cards that serve LLMs."""

from collections.abc import Mapping
from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One card as its maker describes it. A peak is what no workload exceeds, not what one reaches.

    ``name`` is the driver's product name (``nvidia-smi -L``). ``memory_bytes`` is the total that the driver reports
    with ECC on, which differs a little from the number on the box. ``bf16_flops`` is the dense tensor-core peak: data
    sheets that print a figure "with sparsity" are halved here. ``source`` names the public document of the figures.
    """

    name: str
    memory_bytes: float
    bandwidth_bytes_per_second: float
    bf16_flops: float
    tdp_watts: float
    boost_clock_hertz: float
    source: str


def _gpu(  # one row of the table below, in the units of a data sheet
    name: str, mib: int, gb_per_second: float, tflops: float, watts: float, mhz: float, source: str
) -> Gpu:
    return Gpu(
        name=name,
        memory_bytes=float(mib * MIB),
        bandwidth_bytes_per_second=gb_per_second * 1e9,
        bf16_flops=tflops * 1e12,
        tdp_watts=watts,
        boost_clock_hertz=mhz * 1e6,
        source=source,
    )


GPUS: Mapping[str, Gpu] = {
    gpu.name: gpu
    for gpu in (
        _gpu("NVIDIA A10", 23028, 600, 125, 150, 1695, "NVIDIA A10 Tensor Core GPU datasheet"),
        _gpu("NVIDIA L4", 23034, 300, 121, 72, 2040, "NVIDIA L4 Tensor Core GPU datasheet"),
        _gpu("NVIDIA L40S", 46068, 864, 362, 350, 2520, "NVIDIA L40S GPU datasheet"),
        _gpu("NVIDIA A100-SXM4-40GB", 40960, 1555, 312, 400, 1410, "NVIDIA A100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA A100-SXM4-80GB", 81920, 2039, 312, 400, 1410, "NVIDIA A100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA A800-SXM4-80GB", 81920, 2039, 312, 400, 1410, "NVIDIA A800 80GB product brief"),
        _gpu("NVIDIA H100 80GB HBM3", 81559, 3350, 989.5, 700, 1980, "NVIDIA H100 Tensor Core GPU datasheet"),
        _gpu("NVIDIA H200", 143771, 4800, 989.5, 700, 1980, "NVIDIA H200 Tensor Core GPU datasheet"),
        _gpu("NVIDIA B200", 183359, 8000, 2250, 1000, 1965, "NVIDIA DGX B200 datasheet, per GPU"),
    )
}


def gpu_by_name(name: str) -> Gpu | None:
    """The card with this driver name; ``None`` when no peaks are known for it (never a guess at a similar card)."""
    return GPUS.get(name)
