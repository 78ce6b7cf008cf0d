"""How long a step takes: the roofline, times what this particular node makes of it.

The efficiencies, overheads and the noise are drawn from the seed and are nobody else's business: a rule that knew them
would be judged by its own answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from random import Random

from pinchpoint.physics import attention_flops, dense_flops
from pinchpoint.simulator.engine.batching import Batch
from pinchpoint.simulator.engine.spec import EngineSpec

# Below this share of its boost clock a card can no longer keep enough loads in flight to saturate its memory.
_BANDWIDTH_KNEE = 0.8


@dataclass(frozen=True, slots=True)
class StepCost:
    """One step on one rank. ``gpu_seconds`` of it a kernel is resident; the rest is host time between kernels."""

    seconds: float
    gpu_seconds: float
    host_cpu_seconds: float
    flops: float
    moved_bytes: float


class StepTimer:
    """The cost of a batch on this engine's slowest card."""

    def __init__(self, spec: EngineSpec, random: Random) -> None:
        self._random = random
        self._spec, self._shape = spec, spec.shape
        tp = spec.tensor_parallel_size
        self._weight_bytes = self._shape.weight_bytes(tensor_parallel_size=tp)
        self._kv_bytes = self._shape.kv_bytes_per_token(tensor_parallel_size=tp)
        self._compute_efficiency = random.uniform(0.50, 0.62)
        self._bandwidth_efficiency = random.uniform(0.72, 0.82)
        self._launch_seconds = random.uniform(0.6e-3, 1.2e-3)
        self._host_step_seconds = random.uniform(0.8e-3, 1.4e-3)
        self._host_request_seconds = random.uniform(6e-6, 12e-6)
        # Two all-reduces a layer: a fixed latency each, and the activations over NVLink.
        self._comm_latency_seconds = random.uniform(8e-6, 14e-6) if tp > 1 else 0.0
        self._comm_bytes_per_second = random.uniform(180e9, 240e9)
        self._noise = 0.03

    def cost(self, batch: Batch, clock_ratio: float) -> StepCost:
        """``clock_ratio`` is the SM clock of the slowest rank over its boost clock (1 = no throttling)."""
        spec, shape, tp = self._spec, self._shape, self._spec.tensor_parallel_size
        flops = (dense_flops(shape, batch.tokens) + attention_flops(shape, batch.attention_pairs)) / tp
        moved = self._weight_bytes + self._kv_bytes * (batch.kv_tokens_read + batch.tokens)
        compute = flops / (spec.gpu.bf16_flops * self._compute_efficiency * clock_ratio)
        bandwidth = spec.gpu.bandwidth_bytes_per_second * self._bandwidth_efficiency
        memory = moved / (bandwidth * min(1.0, clock_ratio / _BANDWIDTH_KNEE))
        communication = 2 * shape.layers * self._comm_latency_seconds
        if tp > 1:
            communication += 4 * shape.layers * batch.tokens * shape.hidden_size / self._comm_bytes_per_second
        noise = exp(self._random.gauss(0.0, self._noise))
        gpu = (max(compute, memory) + communication + self._launch_seconds) * noise
        host = self._host_step_seconds + self._host_request_seconds * len(batch.work)
        return StepCost(gpu + host, gpu, host, flops, moved)
