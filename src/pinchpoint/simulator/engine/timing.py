"""How long a step takes: the roofline, times what this particular node makes of it.

The efficiencies, overheads and the noise are drawn from the seed and are nobody else's business: a rule that knew them
would be judged by its own answer.
"""

from __future__ import annotations

from math import exp
from random import Random

from pinchpoint.physics import attention_flops, dense_flops, kv_dtype_bytes, tensor_peak_flops
from pinchpoint.simulator.engine.batching import Batch
from pinchpoint.simulator.engine.conditions import Conditions
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.engine.work import StepCost
from pinchpoint.simulator.world import Host

# Below this share of its boost clock a card can no longer keep enough loads in flight to saturate its memory.
BANDWIDTH_KNEE = 0.8
_ACTIVATION_BYTES = 2.0
# What each rank beyond two adds to the latency of an all-reduce: two hops on top of a base of six to ten of them.
_RANK_LATENCY = 0.15
_NOISE = 0.03  # of the logarithm


class StepTimer:
    """The cost of a batch on this engine's slowest rank."""

    def __init__(self, spec: EngineSpec, host: Host, random: Random) -> None:
        self._random, self._spec, self._host = random, spec, host
        # All are drawn whatever the spec: a more generous one differs from it in nothing else.
        compute_efficiency, bandwidth_efficiency = random.uniform(0.50, 0.62), random.uniform(0.72, 0.82)
        link_efficiency, latency_factor = random.uniform(0.60, 0.85), random.uniform(1.2, 2.2)
        self._launch_seconds = random.uniform(0.6e-3, 1.2e-3)
        # vLLM's asynchronous scheduling, where it is on, prepares the next step while the GPU is busy with this one.
        overlap = random.uniform(0.4, 0.9)
        self._overlap = overlap if random.random() < 0.7 else 0.0
        # A matrix for each expert, with the few tokens that chose it: kernels reach less than in one large product.
        computing, reading = random.uniform(0.45, 0.75), random.uniform(0.8, 0.95)
        shape, tp = spec.shape, spec.tensor_parallel_size
        if shape.experts is not None:
            compute_efficiency, bandwidth_efficiency = compute_efficiency * computing, bandwidth_efficiency * reading
        self._flops_per_token, self._flops_per_pair = dense_flops(shape, 1) / tp, attention_flops(shape, 1) / tp
        self._kv_bytes = shape.kv_bytes_per_token(kv_dtype_bytes(spec.kv_cache_dtype, spec.model_config), tp)
        self._state_bytes = 2 * shape.state_bytes_per_request(tp)  # read and written
        self._weight_bytes: dict[int, float] = {}  # by tokens of the step
        self._flops_per_second = compute_efficiency * tensor_peak_flops(spec.gpu, spec.quantization, spec.model_config)
        self._bytes_per_second = bandwidth_efficiency * spec.gpu.bandwidth_bytes_per_second
        # A ring all-reduce after each block of each layer.
        link = spec.link_peak
        self._sent_bytes_per_token = 2 * (tp - 1) / tp * shape.blocks * shape.hidden_size * _ACTIVATION_BYTES
        self._latency_seconds = self._seconds_per_token = 0.0
        if link is not None:
            ranks = 1 + _RANK_LATENCY * (tp - 2)
            self._latency_seconds = shape.blocks * link.latency_seconds * latency_factor * ranks
            self._seconds_per_token = self._sent_bytes_per_token / (link.bytes_per_second * link_efficiency)
        self._over_nvlink = spec.link.startswith("NV")

    def cost(self, batch: Batch, conditions: Conditions, now: float = 0.0) -> StepCost:
        tokens, clock = batch.tokens, conditions.clock_ratio
        flops = self._flops_per_token * tokens + self._flops_per_pair * batch.attention_pairs
        moved = (
            self._weights(tokens)
            + self._kv_bytes * (batch.kv_tokens_read + tokens)
            + self._state_bytes * batch.requests
        )
        compute = flops / (self._flops_per_second * clock)
        memory = moved / (self._bytes_per_second * min(1.0, clock / BANDWIDTH_KNEE))
        noise = exp(self._random.gauss(0.0, _NOISE))
        communication = (self._latency_seconds + self._seconds_per_token * tokens) * noise
        gpu = (max(compute, memory) + self._launch_seconds) * noise + communication
        host = (self._host.step_seconds + self._host.request_seconds * batch.requests) * noise
        # What is not hidden stands before the launch: a thread that is stopped there leaves the card without work.
        before = conditions.host_seconds(now, host * (1.0 - self._overlap))
        beside = conditions.host_seconds(now + before, host * self._overlap)
        sent = self._sent_bytes_per_token * tokens
        return StepCost(
            seconds=before + max(gpu, beside),
            gpu_seconds=gpu,
            communication_seconds=communication,
            host_cpu_seconds=host,
            flops=flops,
            moved_bytes=moved,
            pcie_communication_bytes=0.0 if self._over_nvlink else sent,
            nvlink_communication_bytes=sent if self._over_nvlink else 0.0,
        )

    def _weights(self, tokens: int) -> float:
        """Of a mixture of experts the more, the more tokens there are to choose experts for."""
        known = self._weight_bytes.get(tokens)
        if known is None:
            spec = self._spec
            known = spec.shape.weight_bytes_read(tokens, spec.weight_dtype_bytes, spec.tensor_parallel_size)
            self._weight_bytes[tokens] = known
        return known
