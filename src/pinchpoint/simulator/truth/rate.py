"""What a world should manage, estimated: so that a load can be drawn that is light, near the limit, or beyond it.

Is not the truth: it knows averages, no queue, no chance and not this node's own efficiencies. Nothing is labelled by
it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.physics import StepWork, kv_dtype_bytes, step_time, tensor_peak_flops
from pinchpoint.simulator.engine.timing import BANDWIDTH_KNEE
from pinchpoint.simulator.node.host import LEAST_CORES
from pinchpoint.simulator.node.workload import Lengths, Workload
from pinchpoint.simulator.world import LostCard, Stall, Throttle, World

# What engines make of the peaks, roughly; and what every step costs besides.
_FLOPS_SHARE, _BANDWIDTH_SHARE, _LINK_SHARE, _STEP_SECONDS = 0.55, 0.77, 0.6, 0.9e-3
_HIDDEN_HOST_SHARE = 0.4
_SMALLEST = 1e-3  # requests a second: as good as none


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean request. ``held_tokens`` of KV cache while it runs, halfway; ``computed_tokens`` of its prompt."""

    computed_tokens: float
    held_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """Of the whole service: ``requests_per_second`` within its objectives at most; latencies of a request alone."""

    requests_per_second: float
    ttft_seconds: float
    tpot_seconds: float


def expected(world: World) -> Expected:
    """At most so many requests a second keep the TPOT objective on average. A replica that stands still has no part."""
    each = [_replica(world, index) for index in range(world.replicas)]
    rates = [rate for rate, _, _ in each]
    weights = world.routing.weights
    if world.routing.policy == "weighted" and weights:
        service = min(rate * sum(weights) / weight for rate, weight in zip(rates, weights, strict=True) if weight > 0)
    elif world.routing.policy == "round_robin":
        service = min(rates) * len(rates)
    else:
        service = sum(rates)
    _, ttft, tpot = max(each)
    return Expected(requests_per_second=max(_SMALLEST, service), ttft_seconds=ttft, tpot_seconds=tpot)


def demanded(world: World) -> float:
    """Requests a second that are asked for; of clients who wait, as many as they would ask if each were alone."""
    workload = world.workload
    if not workload.clients:
        return workload.arrivals_per_second
    alone = expected(world)
    lasts = alone.ttft_seconds + mean_request(workload).output_tokens * alone.tpot_seconds
    return workload.arrivals_per_second + workload.clients / (lasts + workload.think_seconds)


def mean_request(workload: Workload) -> Mean:
    """Talks of several turns carry everything that was said, most of it cached."""
    prompt, output = _mean(workload.prompt), _mean(workload.output)
    shared = workload.prefix_tokens * workload.prefix_share
    before = (workload.turns - 1) / 2 * (prompt + output)
    return Mean(computed_tokens=prompt, held_tokens=shared + before + prompt + output / 2, output_tokens=output)


def _mean(lengths: Lengths) -> float:
    return min(float(lengths.high), lengths.median * (1.0 + lengths.sigma**2 / 2))


def _replica(world: World, index: int) -> tuple[float, float, float]:
    """Its rate, and TTFT and TPOT of a request that is alone."""
    spec, mean = world.engine, mean_request(world.workload)
    clock = _clock(world, index)
    alone = _step_seconds(world, clock, decoding=1, mean=mean)
    prefill = _prefill_seconds(world, clock, mean)
    ttft = prefill + world.host.admission_seconds + world.gateway.delay_seconds
    if clock == 0.0:
        return _SMALLEST, ttft, alone
    slots = max(1.0, min(spec.max_num_seqs, spec.kv_capacity_tokens / mean.held_tokens))
    best, running = 0.0, 1.0
    while True:
        step = _step_seconds(world, clock, decoding=running, mean=mean)
        rate = 1.0 / (prefill + mean.output_tokens * step / running)
        left = 1.0 - rate * prefill  # of the time, for decode
        if left > 0.0 and step / left <= world.slo.tpot_seconds:
            best = max(best, rate)
        elif step < world.slo.tpot_seconds:  # fewer of them than would fill the batch
            best = max(best, (1.0 - step / world.slo.tpot_seconds) / prefill)
        if running >= slots:
            break
        running = min(slots, running * 1.5)
    host = world.host.frontend_cores / (world.host.admission_seconds * _slowdown(world) + 1e-9)
    return max(_SMALLEST, min(best, host)), ttft, alone


def cores_wanted(world: World) -> float:
    """An engine core and its workers spin, each on a core of its own."""
    return float(world.replicas * (1 + world.engine.tensor_parallel_size))


def _slowdown(world: World) -> float:
    host = world.host
    allowed = min(host.cpu_count - host.other_cores, host.quota_cores or float("inf"))
    return max(1.0, cores_wanted(world) / max(LEAST_CORES, allowed))


def _clock(world: World, index: int) -> float:
    size, first = world.engine.tensor_parallel_size, int(world.engine.gpus[0])
    own = {str(first + index * size + rank) for rank in range(size)}
    clock = 1.0
    for fault in world.faults:
        if isinstance(fault, Throttle) and fault.gpu in own:
            clock = min(clock, fault.clock_ratio)
        elif (isinstance(fault, LostCard) and fault.gpu in own) or (
            isinstance(fault, Stall) and fault.replica == index
        ):
            return 0.0
    return clock


def _prefill_seconds(world: World, clock: float, mean: Mean) -> float:
    """Of one prompt, in chunks of the token budget."""
    chunks = max(1.0, mean.computed_tokens / world.engine.max_num_batched_tokens)
    tokens = mean.computed_tokens / chunks
    return chunks * _seconds(
        world, clock, StepWork(tokens=tokens, requests=1, attention_pairs=tokens * mean.held_tokens / 2)
    )


def _step_seconds(world: World, clock: float, *, decoding: float, mean: Mean) -> float:
    context = decoding * mean.held_tokens
    work = StepWork(tokens=decoding, requests=decoding, attention_pairs=context, kv_tokens_read=context)
    return _seconds(world, clock, work)


def _seconds(world: World, clock: float, work: StepWork) -> float:
    spec, host = world.engine, world.host
    peak = step_time(
        spec.shape,
        spec.gpu,
        work,
        weight_dtype_bytes=spec.weight_dtype_bytes,
        kv_dtype_bytes=kv_dtype_bytes(spec.kv_cache_dtype, spec.model_config),
        peak_flops=tensor_peak_flops(spec.gpu, spec.quantization, spec.model_config),
        tensor_parallel_size=spec.tensor_parallel_size,
        link=spec.link_peak,
    )
    clock = max(clock, 0.01)
    compute = peak.compute_seconds / (_FLOPS_SHARE * clock)
    memory = peak.memory_seconds / (_BANDWIDTH_SHARE * min(1.0, clock / BANDWIDTH_KNEE))
    gpu = max(compute, memory) + _STEP_SECONDS + peak.communication_seconds / _LINK_SHARE
    own = host.step_seconds + host.request_seconds * work.requests
    slowdown = _slowdown(world)
    # Out of CPU, everything stands still in its turn.
    return (max(gpu, _HIDDEN_HOST_SHARE * own) + (1 - _HIDDEN_HOST_SHARE) * own) * slowdown
