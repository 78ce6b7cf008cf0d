"""What might serve: a model on cards that hold it, with the flags of an operator, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from pinchpoint.physics import CONFIGS, GPUS, Gpu, ModelShape, slice_of, weight_dtype_bytes
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.node.workload import Workload
from pinchpoint.simulator.truth.asking import longest_request
from pinchpoint.simulator.truth.rate import mean_request

PCIE_LINKS = ("PIX", "PXB", "PHB", "NODE", "SYS")
_MOST_CARDS = 8
_LEAST_HELD = 12  # mean requests that a pool must have room for, lest it be a story of KV capacity by itself
# Profile, sevenths of the SMs and share of the memory: NVIDIA's MIG user guide.
_SLICES = {"2g": (2, 0.25), "3g": (3, 0.5), "4g": (4, 0.5)}


def engine_for(
    workload: Workload, random: Random, *, ranks: Sequence[int] = (1, 2, 4, 8), linked: bool = True, whole: bool = False
) -> EngineSpec | None:
    """An engine with room for these requests; ``None`` when what was drawn has none: draw again.

    ``linked``: over NVLink where the card has it. ``whole``: no slice of a card.
    """
    model = random.choice(tuple(CONFIGS))
    gpu = random.choice(tuple(GPUS.values()))
    config = CONFIGS[model]
    size = random.choice(ranks)
    mig = not whole and size == 1 and gpu.nvlinks > 0 and random.random() < 0.15
    if mig:
        profile = random.choice(tuple(_SLICES))
        sms, memory = _SLICES[profile]
        gigabytes = round(gpu.memory_bytes * memory / 1e9)
        gpu = replace(slice_of(gpu, sms, 7, memory), name=f"{gpu.name} MIG {profile}.{gigabytes}gb")
    quantization = _quantization(config, gpu, random)
    if not _sensible(config, quantization, gpu, size):
        return None
    budget = random.choice((2048, 4096, 8192, 8192))
    length = next((n for n in (4096, 8192, 16384, 32768) if n >= longest_request(workload)), 65536)
    try:
        spec = EngineSpec(
            name=model.rpartition("/")[2].lower(),
            model=model,
            model_config=config,
            gpu=gpu,
            gpus=tuple(str(rank) for rank in range(size)),
            link=_link(gpu, random, linked=linked),
            mig=mig,
            quantization=quantization,
            kv_cache_dtype=random.choice(("auto", "auto", "auto", "fp8")),
            max_num_seqs=random.choice((128, 256, 256, 512)),
            max_num_batched_tokens=budget,
            max_model_len=length,
            gpu_memory_utilization=random.choice((0.85, 0.9, 0.92, 0.95)),
            overhead_bytes=random.uniform(2e9, 5e9),
        )
    except ValueError:  # it would not start
        return None
    return spec if spec.kv_capacity_tokens >= _LEAST_HELD * mean_request(workload).held_tokens else None


def with_kv_tokens(spec: EngineSpec, tokens: float) -> EngineSpec:
    """With a pool of about so many tokens, as a lower memory utilisation makes it; at least one longest request's."""
    tokens = max(tokens, spec.max_model_len + (spec.state_blocks_per_request + 2) * spec.block_size)
    pool = tokens / spec.block_size * spec.block_bytes
    weights = spec.shape.weight_bytes(spec.weight_dtype_bytes, spec.tensor_parallel_size)
    utilization = (weights + spec.overhead_bytes + pool) / spec.gpu.memory_bytes
    return replace(spec, gpu_memory_utilization=round(min(spec.gpu_memory_utilization, utilization + 5e-4), 4))


def most_replicas(spec: EngineSpec) -> int:
    """On a node of eight cards."""
    return 1 if spec.mig else _MOST_CARDS // spec.tensor_parallel_size


def _quantization(config: object, gpu: Gpu, random: Random) -> str | None:
    chance = random.random()
    if isinstance(config, dict) and "quantization_config" in config:
        return None
    if chance < 0.2 and gpu.fp8_flops is not None:
        return "fp8"
    return "int4" if 0.2 <= chance < 0.3 else None


def _sensible(config: object, quantization: str | None, gpu: Gpu, size: int) -> bool:
    """The weights fit, and don't lie on eight times the cards that they need."""
    assert isinstance(config, dict)
    shape = ModelShape.from_config(config)
    share = shape.weight_bytes(weight_dtype_bytes(quantization, config), size) / gpu.memory_bytes
    heads = config["num_attention_heads"]
    return (0.06 if size > 1 else 0.02) < share < 0.8 and heads % size == 0


def _link(gpu: Gpu, random: Random, *, linked: bool) -> str:
    if gpu.nvlinks and linked:
        return f"NV{gpu.nvlinks}"
    return random.choice(PCIE_LINKS)
