"""What serving costs on a card: the FLOPs of a forward pass, and the memory left for the KV cache.

A pass costs about 2 FLOPs a parameter and token (Kaplan et al. 2020, "Scaling laws"), attention apart.
"""

from math import ceil

from pinchpoint.physics.gpus import Gpu
from pinchpoint.physics.models import ModelShape


def dense_flops(shape: ModelShape, tokens: float) -> float:
    """FLOPs of all matrix products with weights for ``tokens`` tokens, over all ranks: 2 × weights × tokens.

    Of a mixture of experts those that a token passes; an input embedding is looked up, not multiplied with.
    """
    return 2.0 * shape.computed_parameters * tokens


def attention_flops(shape: ModelShape, pairs: float) -> float:
    """FLOPs of attention over ``pairs`` (query, key) pairs, over all ranks: QKᵀ and PV, 2 FLOPs each per element."""
    return shape.attention_flops_per_pair * pairs


def kv_budget_bytes(
    gpu: Gpu, gpu_memory_utilization: float, weight_bytes_per_rank: float, overhead_bytes: float
) -> float:
    """What one rank has left for KV blocks: its share of the card, less weights, less activations, graphs and context.

    This is how vLLM sizes its pool at start (``determine_available_memory``). 0 means that it would refuse to start.
    """
    return max(0.0, ceil(gpu.memory_bytes * gpu_memory_utilization) - weight_bytes_per_rank - overhead_bytes)
