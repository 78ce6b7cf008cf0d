"""The roofline of LLM serving: the least time a step can take, and the memory left for the KV cache.

Roofline: Williams, Waterman, Patterson, "Roofline: an insightful visual performance model" (CACM 2009). A forward pass
costs about 2 FLOPs a parameter and token (Kaplan et al. 2020, "Scaling laws"), attention apart. All times are lower
bounds: they assume peak rates, and no launch, host or communication time.
"""

from math import ceil

from pinchpoint.physics.gpus import Gpu
from pinchpoint.physics.models import ModelShape


def roofline_seconds(flops: float, moved_bytes: float, gpu: Gpu) -> float:
    """The longer of computing ``flops`` and moving ``moved_bytes`` on one card, both at peak."""
    return max(flops / gpu.bf16_flops, moved_bytes / gpu.bandwidth_bytes_per_second)


def dense_flops(shape: ModelShape, tokens: float) -> float:
    """FLOPs of all matrix products with weights for ``tokens`` tokens, over all ranks: 2 × parameters × tokens."""
    return 2.0 * shape.parameters * tokens


def attention_flops(shape: ModelShape, pairs: float) -> float:
    """FLOPs of attention over ``pairs`` (query, key) pairs, over all ranks: QKᵀ and PV, 2 FLOPs each per element."""
    return 4.0 * shape.layers * shape.attention_heads * shape.head_dim * pairs


def decode_step_seconds(
    shape: ModelShape,
    gpu: Gpu,
    kv_tokens: float,
    *,
    tensor_parallel_size: int = 1,
    weight_dtype_bytes: float = 2.0,
    kv_dtype_bytes: float = 2.0,
) -> float:
    """One decode step: a rank reads its weights once and the KV of every running sequence (``kv_tokens`` in all)."""
    weights = shape.weight_bytes(weight_dtype_bytes, tensor_parallel_size)
    kv = kv_tokens * shape.kv_bytes_per_token(kv_dtype_bytes, tensor_parallel_size)
    return (weights + kv) / gpu.bandwidth_bytes_per_second


def prefill_seconds(shape: ModelShape, gpu: Gpu, tokens: float, *, tensor_parallel_size: int = 1) -> float:
    """Prefill of a prompt of ``tokens``: its dense and (causal, hence half) attention FLOPs, split over the ranks."""
    flops = dense_flops(shape, tokens) + attention_flops(shape, tokens * tokens / 2)
    return flops / tensor_parallel_size / gpu.bf16_flops


def kv_budget_bytes(
    gpu: Gpu, gpu_memory_utilization: float, weight_bytes_per_rank: float, overhead_bytes: float
) -> float:
    """What one rank has left for KV blocks: its share of the card, less weights, less activations, graphs and context.

    This is how vLLM sizes its pool at start (``determine_available_memory``). 0 means that it would refuse to start.
    """
    return max(0.0, ceil(gpu.memory_bytes * gpu_memory_utilization) - weight_bytes_per_rank - overhead_bytes)
