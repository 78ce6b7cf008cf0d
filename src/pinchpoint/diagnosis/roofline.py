"""How near the engine is to what its model and its cards can do: the roofline of the actual shapes and peaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.rates import known, ratio
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.work import Work, work_of
from pinchpoint.physics import (
    Gpu,
    ModelShape,
    StepTime,
    StepWork,
    gpu_by_name,
    kv_dtype_bytes,
    step_time,
    tensor_peak_flops,
    weight_dtype_bytes,
)
from pinchpoint.snapshot import EngineFacts, EngineReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """Over the window; ``None`` is unknown (no model shape, no published peaks, no step counter).

    Peaks are published ones, without any efficiency: real engines reach 0.5 to 0.85 of the bandwidth and 0.4 to 0.6 of
    the dense FLOPs. Only ``roofline_compute_share`` and what is expected of requests that wait take it into account.
    """

    step_seconds: float | None = None  # time per engine step while requests run
    roofline_step_seconds: float | None = None  # the same at peak: the longest of compute and memory
    roofline_ratio: float | None = None  # roofline over observed: 1 is as fast as this card goes
    memory_bandwidth_utilization_ratio: float | None = None  # bytes that had to be moved, of the peak
    compute_utilization_ratio: float | None = None  # FLOPs that had to be done while requests ran, of the peak
    roofline_compute_share: float | None = None  # compute over compute and memory time at peak: which one paces
    running_context_tokens: float | None = None  # of a running request
    prompt_roofline_seconds: float | None = None  # a mean prompt's computation at peak, alone on the engine's cards
    # The time between tokens if all who wait ran too, as if slots and KV cache had no limit: what is gained by them.
    inter_token_if_admitted_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """A model in its precision on its cards: what turns work into time."""

    shape: ModelShape
    gpu: Gpu
    tensor_parallel_size: int
    weight_bytes: float
    kv_bytes: float
    peak_flops: float

    def time(self, work: StepWork) -> StepTime:
        return step_time(
            self.shape,
            self.gpu,
            work,
            weight_dtype_bytes=self.weight_bytes,
            kv_dtype_bytes=self.kv_bytes,
            peak_flops=self.peak_flops,
            tensor_parallel_size=self.tensor_parallel_size,
        )


def machine_of(facts: EngineFacts, gpu_name: str | None = None) -> Machine | None:
    """From what is known of the engine; ``gpu_name`` is what its cards call themselves, where no fact says it."""
    name = facts.gpu_name or gpu_name
    gpu = gpu_by_name(name) if name else None
    if gpu is None or not facts.model_config:
        return None
    config = facts.model_config
    try:
        shape = ModelShape.from_config(config)
    except (ValueError, TypeError, OverflowError):  # no shape, an architecture of another kind, a hundred digits
        return None
    return Machine(
        shape=shape,
        gpu=gpu,
        tensor_parallel_size=max(1, facts.tensor_parallel_size or 1),
        weight_bytes=weight_dtype_bytes(facts.quantization, config),
        kv_bytes=kv_dtype_bytes(facts.kv_cache_dtype, config),
        peak_flops=tensor_peak_flops(gpu, facts.quantization, config),
    )


def flops_utilization(machine: Machine | None, reading: EngineReading, load: Load) -> float | None:
    """2 FLOPs a weight and token over the peak of the engine's cards, idle time included.

    Kaplan et al. 2020; of a mixture of experts the weights that a token passes.
    """
    prompt, generation = load.prompt_tokens_per_second, load.generation_tokens_per_second
    if machine is None or prompt is None or generation is None:
        return None
    ranks = machine.tensor_parallel_size * max(1, reading.facts.pipeline_parallel_size or 1)
    cards = ranks * max(1, len(reading.replicas))
    return known(2.0 * machine.shape.computed_parameters * (prompt + generation) / (cards * machine.peak_flops))


def roofline_of(
    machine: Machine | None, readings: Sequence[EngineReading], load: Load, latency: Latency, thresholds: Thresholds
) -> Roofline:
    """The work of the window's steps at peak, against the time that they took."""
    work = work_of(readings, load, latency)
    if work is None:
        return Roofline()
    step, context = work.step_seconds, work.context_tokens
    if machine is None or not work.steps:
        return Roofline(step_seconds=step, running_context_tokens=context)
    times = [(machine.time(each), share) for each, share in work.steps]
    at_peak = known(sum(share * time.seconds for time, share in times))
    compute = sum(share * time.compute_seconds for time, share in times)
    memory = sum(share * time.memory_seconds for time, share in times)
    return Roofline(
        step_seconds=step,
        roofline_step_seconds=at_peak,
        roofline_ratio=ratio(at_peak, step),
        memory_bandwidth_utilization_ratio=ratio(memory, step),
        compute_utilization_ratio=ratio(compute, step),
        roofline_compute_share=_compute_share(times, thresholds),
        running_context_tokens=context,
        prompt_roofline_seconds=_prompt(machine, work),
        inter_token_if_admitted_seconds=_if_admitted(machine, work, latency, thresholds),
    )


def _compute_share(times: Sequence[tuple[StepTime, float]], thresholds: Thresholds) -> float | None:
    """How much of the steps' time belongs to compute, in each step by its own two times: a few long prompts between
    many short decode steps are both."""
    belongs = total = 0.0
    for time, share in times:
        compute = time.compute_seconds / thresholds.flops_reached_ratio
        memory = time.memory_seconds / thresholds.bandwidth_reached_ratio
        if compute + memory > 0:
            longest = share * max(compute, memory)
            belongs, total = belongs + longest * compute / (compute + memory), total + longest
    return ratio(belongs, total)


def _prompt(machine: Machine, work: Work) -> float | None:
    if not work.computed_prompt_tokens:
        return None
    tokens, cached = work.computed_prompt_tokens, (work.prompt_tokens or 0.0) - work.computed_prompt_tokens
    pairs = tokens * (max(0.0, cached) + tokens / 2)
    return machine.time(StepWork(tokens=tokens, requests=1, attention_pairs=pairs)).compute_seconds


def _if_admitted(machine: Machine, work: Work, latency: Latency, thresholds: Thresholds) -> float | None:
    """What each more request adds to a step is its share of KV reads and of prompts to compute.

    With the part w of a step that grows in proportion to the running requests, x times as many of them make a step
    1 - w + w x long. x is all who run and wait over those who run; where the queue grows, at most what is needed to
    keep up with r times the requests that start now: x / (1 - w + w x) = r.
    """
    now, step, running, waiting = latency.inter_token_mean_seconds, work.step_seconds, work.running, work.waiting
    if now is None or not step or not running or waiting is None or not work.steps:
        return None
    grows = 0.0
    for each, share in work.steps:
        prompts = max(0.0, each.tokens - (work.decode_tokens or 0.0))
        computed = machine.time(StepWork(tokens=prompts)).compute_seconds if prompts else 0.0
        kv = machine.shape.kv_bytes_per_token(machine.kv_bytes, machine.tensor_parallel_size) * each.kv_tokens_read
        kv += machine.shape.state_bytes_per_request(machine.tensor_parallel_size) * 2 * each.requests
        read = kv / machine.gpu.bandwidth_bytes_per_second
        grows += share * max(computed / thresholds.flops_reached_ratio, read / thresholds.bandwidth_reached_ratio, 0.0)
    w = min(1.0, grows / step)
    x = (running + waiting) / running
    if work.demand_ratio is not None and work.demand_ratio > 1.0 and w * work.demand_ratio < 1.0:
        x = min(x, max(1.0, work.demand_ratio * (1.0 - w) / (1.0 - w * work.demand_ratio)))
    return known(now * (1.0 - w + w * x))
