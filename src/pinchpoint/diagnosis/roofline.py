"""How near the engine is to what its model and its cards can do: the roofline of the actual shapes and peaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.identity import once_each
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
    attention_flops,
    dense_flops,
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
    the dense FLOPs. Only shares, ``step_explained_ratio`` and what is expected of requests that wait reckon with that.
    """

    step_seconds: float | None = None  # time per engine step while requests run
    roofline_step_seconds: float | None = None  # the same at peak: the longest of compute and memory
    roofline_ratio: float | None = None  # roofline over observed: 1 is as fast as this card goes
    memory_bandwidth_utilization_ratio: float | None = None  # bytes that had to be moved, of the peak
    compute_utilization_ratio: float | None = None  # FLOPs that had to be done while requests ran, of the peak
    step_explained_ratio: float | None = None  # a step at usual efficiency over observed: the rest is no GPU's work
    decode_roofline_seconds: float | None = None  # a step of the running requests at peak, without any prompt
    roofline_compute_share: float | None = None  # compute over compute and memory time at peak: which one paces
    demand_ratio: float | None = None  # requests that came over those that started, where the queue is counted
    running_context_tokens: float | None = None  # of a running request
    prompt_roofline_seconds: float | None = None  # a mean prompt's computation at peak, alone on the engine's cards
    # The time between tokens if all who wait ran too, as if slots and KV cache had no limit: what is gained by them.
    inter_token_if_admitted_seconds: float | None = None
    admission_gain_ratio: float | None = None  # requests finished, were so many let in that tokens are just on time


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

    def compute_seconds(self, tokens: float, attention_pairs: float = 0.0) -> float:
        """Of ``time``, what computing takes alone."""
        flops = dense_flops(self.shape, tokens) + attention_flops(self.shape, attention_pairs)
        return flops / self.tensor_parallel_size / self.peak_flops


@once_each(64)  # the config of an engine is the same from scrape to scrape
def shape_of(config: Mapping[str, object]) -> ModelShape | None:
    """``None`` where the config has no shape, or that of an architecture which can't be added up."""
    try:
        return ModelShape.from_config(config)
    except (ValueError, TypeError, OverflowError, ZeroDivisionError):  # also: a hundred digits
        return None


def machine_of(facts: EngineFacts) -> Machine | None:
    """From what is known of the engine; ``None`` without its model's shape or its card's peaks."""
    gpu = gpu_by_name(facts.gpu_name) if facts.gpu_name else None
    if gpu is None or not facts.model_config:
        return None
    config, shape = facts.model_config, shape_of(facts.model_config)
    if shape is None:
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
    """What all tokens cost, attention apart, over the peak of the engine's cards, idle time included."""
    prompt, generation = load.prompt_tokens_per_second, load.generation_tokens_per_second
    if machine is None or prompt is None or generation is None:
        return None
    ranks = machine.tensor_parallel_size * max(1, reading.facts.pipeline_parallel_size or 1)
    cards = ranks * max(1, len(reading.replicas))
    return known(dense_flops(machine.shape, prompt + generation) / (cards * machine.peak_flops))


def roofline_of(
    machine: Machine | None, readings: Sequence[EngineReading], load: Load, latency: Latency, thresholds: Thresholds
) -> Roofline:
    """The work of the window's steps at peak, against the time that they took."""
    work = work_of(readings, load, latency)
    if work is None:
        return Roofline()
    step, context = work.step_seconds, work.context_tokens
    if machine is None or not work.steps:
        return Roofline(step_seconds=step, demand_ratio=work.demand_ratio, running_context_tokens=context)
    times = [(machine.time(each), share) for each, share in work.steps]
    usual = [(*_usual(machine, time, thresholds), share) for time, share in times]
    explained = sum(share * max(compute, memory) for compute, memory, share in usual)
    grows = _grows(machine, work, explained, thresholds)
    at_peak = known(sum(share * time.seconds for time, share in times))
    compute = sum(share * time.compute_seconds for time, share in times)
    memory = sum(share * time.memory_seconds for time, share in times)
    return Roofline(
        step_seconds=step,
        roofline_step_seconds=at_peak,
        roofline_ratio=ratio(at_peak, step),
        memory_bandwidth_utilization_ratio=ratio(memory, step),
        compute_utilization_ratio=ratio(compute, step),
        step_explained_ratio=ratio(explained, step),
        decode_roofline_seconds=_decode(machine, work),
        roofline_compute_share=_compute_share(usual),
        demand_ratio=work.demand_ratio,
        running_context_tokens=context,
        prompt_roofline_seconds=_prompt(machine, work),
        inter_token_if_admitted_seconds=_if_admitted(work, latency, grows),
        admission_gain_ratio=_admission_gain(work, latency, grows, readings[-1].slo.tpot_seconds),
    )


def _flops_reached(machine: Machine, thresholds: Thresholds) -> float:
    """The share of the FLOPs that kernels reach: less where each expert multiplies the few tokens that chose it."""
    return thresholds.flops_reached_ratio * (1.0 if machine.shape.experts is None else thresholds.experts_flops_ratio)


def _usual(machine: Machine, time: StepTime, thresholds: Thresholds) -> tuple[float, float]:
    """Compute and memory time of a step at the efficiency that real kernels reach."""
    return (
        time.compute_seconds / _flops_reached(machine, thresholds),
        time.memory_seconds / thresholds.bandwidth_reached_ratio,
    )


def _decode(machine: Machine, work: Work) -> float | None:
    if not work.running:
        return None
    read = work.running * (work.context_tokens or 0.0)
    decode = StepWork(tokens=work.running, requests=work.running, attention_pairs=read, kv_tokens_read=read)
    return known(machine.time(decode).seconds)


def _compute_share(usual: Sequence[tuple[float, float, float]]) -> float | None:
    """How much of the steps' time belongs to compute, in each step by its own two times: a few long prompts between
    many short decode steps are both."""
    belongs = total = 0.0
    for compute, memory, share in usual:
        if compute + memory > 0:
            longest = share * max(compute, memory)
            belongs, total = belongs + longest * compute / (compute + memory), total + longest
    return ratio(belongs, total)


def _prompt(machine: Machine, work: Work) -> float | None:
    if not work.computed_prompt_tokens:
        return None
    tokens, cached = work.computed_prompt_tokens, (work.prompt_tokens or 0.0) - work.computed_prompt_tokens
    pairs = tokens * (max(0.0, cached) + tokens / 2)
    return machine.compute_seconds(tokens, pairs)


def _grows(machine: Machine, work: Work, explained: float, thresholds: Thresholds) -> float | None:
    """The part of a step that grows in proportion to the running requests: their KV reads, experts that only more
    tokens choose, prompts to compute, and half of what the GPU's work, ``explained``, doesn't cover, for a host has
    work for each request too."""
    if not work.step_seconds or not work.running:
        return None
    shape, tp, grows = machine.shape, machine.tensor_parallel_size, 0.0
    of_token, of_request = shape.kv_bytes_per_token(machine.kv_bytes, tp), shape.state_bytes_per_request(tp) * 2
    flops_reached = _flops_reached(machine, thresholds)
    for each, share in work.steps:
        prompts = max(0.0, each.tokens - (work.decode_tokens or 0.0))
        computed = machine.compute_seconds(prompts) / flops_reached
        reading = (of_token * each.kv_tokens_read + of_request * each.requests) / machine.gpu.bandwidth_bytes_per_second
        reading += _experts(machine, each, 1.0 + (work.waiting or 0.0) / work.running)
        grows += share * max(computed, reading / thresholds.bandwidth_reached_ratio)
    rest = max(0.0, work.step_seconds - explained) / 2
    return known(min(1.0, (grows + rest) / work.step_seconds))


def _experts(machine: Machine, step: StepWork, times: float) -> float:
    """Seconds at peak to read the experts that ``times`` as many tokens choose besides, for each time as many."""
    if machine.shape.experts is None or times <= 1.0:
        return 0.0
    more = step._replace(tokens=step.tokens * times)
    return (machine.time(more).memory_seconds - machine.time(step).memory_seconds) / (times - 1.0)


def _if_admitted(work: Work, latency: Latency, grows: float | None) -> float | None:
    """With the part w of a step that grows, x times as many running requests make a step 1 - w + w x long.

    x is all who run and wait over those who run; where the queue grows, at most what is needed to keep up with r times
    the requests that start now: x / (1 - w + w x) = r.
    """
    now, running, waiting = latency.inter_token_mean_seconds, work.running, work.waiting
    if now is None or grows is None or not running or waiting is None:
        return None
    x, r = (running + waiting) / running, work.demand_ratio
    if r is not None and r > 1.0 and grows * r < 1.0:
        x = min(x, max(1.0, r * (1.0 - grows) / (1.0 - grows * r)))
    return known(now * (1.0 - grows + grows * x))


def _admission_gain(work: Work, latency: Latency, grows: float | None, objective: float) -> float | None:
    """The same until tokens are just on time: 1 - w + w x = objective / now; x over that is what is gained."""
    now = latency.inter_token_mean_seconds
    if not now or grows is None or not work.running or work.waiting is None:
        return None
    room, everybody = max(1.0, objective / now), (work.running + work.waiting) / work.running
    x = min(everybody, 1.0 + (room - 1.0) / grows) if grows > 0 else everybody
    return known(x / (1.0 - grows + grows * x))
