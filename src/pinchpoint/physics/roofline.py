"""The least that a step can take: the roofline of Williams et al. 2009 for one pass through a transformer.

Is not: a prediction. Real engines reach 0.5 to 0.85 of the bandwidth and 0.4 to 0.6 of the FLOPs, and add the time to
launch kernels and the host's between two steps.
"""

from typing import NamedTuple

from pinchpoint.physics.costs import attention_flops, dense_flops
from pinchpoint.physics.gpus import Gpu
from pinchpoint.physics.links import Link
from pinchpoint.physics.models import ModelShape

_ACTIVATION_BYTES = 2.0


class StepWork(NamedTuple):
    """What one step does: ``tokens`` computed for ``requests``, ``attention_pairs`` of a query and a key, and the KV
    cache of ``kv_tokens_read`` tokens read."""

    tokens: float
    requests: float = 0.0
    attention_pairs: float = 0.0
    kv_tokens_read: float = 0.0


class StepTime(NamedTuple):
    """Seconds at peak on one rank. Compute and memory overlap; the all-reduces between them do not."""

    compute_seconds: float
    memory_seconds: float
    communication_seconds: float
    moved_bytes: float

    @property
    def seconds(self) -> float:
        return max(self.compute_seconds, self.memory_seconds) + self.communication_seconds


def step_time(
    shape: ModelShape,
    gpu: Gpu,
    work: StepWork,
    *,
    weight_dtype_bytes: float = 2.0,
    kv_dtype_bytes: float = 2.0,
    peak_flops: float | None = None,
    tensor_parallel_size: int = 1,
    link: Link | None = None,
) -> StepTime:
    """The times of a step at peak. ``peak_flops``: of the weights' precision, the card's bf16 peak unless given.

    Memory: the weights read, KV read and written, recurrent state read and written. Without a link communication takes
    no time.
    """
    tp = max(1, tensor_parallel_size)
    flops = (dense_flops(shape, work.tokens) + attention_flops(shape, work.attention_pairs)) / tp
    moved = (
        shape.weight_bytes_read(work.tokens, weight_dtype_bytes, tp)
        + shape.kv_bytes_per_token(kv_dtype_bytes, tp) * (work.kv_tokens_read + work.tokens)
        + shape.state_bytes_per_request(tp) * 2 * work.requests
    )
    return StepTime(
        compute_seconds=flops / (peak_flops or gpu.bf16_flops),
        memory_seconds=moved / gpu.bandwidth_bytes_per_second,
        communication_seconds=communication_seconds(shape, work.tokens, tp, link) if link else 0.0,
        moved_bytes=moved,
    )


def communication_seconds(shape: ModelShape, tokens: float, tensor_parallel_size: int, link: Link) -> float:
    """The all-reduces of a step, one a block: a ring moves 2 (tp - 1) / tp of the activations over each link (Patarasuk
    and Yuan 2009), in 2 (tp - 1) hops."""
    tp = tensor_parallel_size
    if tp < 2:
        return 0.0
    moved = 2 * (tp - 1) / tp * tokens * shape.hidden_size * _ACTIVATION_BYTES
    return shape.blocks * (link.latency_seconds + moved / link.bytes_per_second)
