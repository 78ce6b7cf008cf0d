"""What the engine's steps have to do: tokens, contexts, prompts, of one replica while it has requests."""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.moments import waiting_of
from pinchpoint.diagnosis.rates import histories, known, mean, observed, observed_mean, ratio, total
from pinchpoint.physics import StepWork
from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Means over the replicas and the window; ``None`` is unknown.

    ``steps``: kinds of step by their number of tokens, each with its share of all steps. ``demand_ratio``: requests
    that came over those that started, where the queue is counted.
    """

    step_seconds: float | None = None
    steps: tuple[tuple[StepWork, float], ...] = ()
    decode_tokens: float | None = None  # of a step
    context_tokens: float | None = None  # of a running request
    running: float | None = None  # while there are any
    waiting: float | None = None
    prompt_tokens: float | None = None  # of a request, with those that a cache served
    computed_prompt_tokens: float | None = None
    demand_ratio: float | None = None


def work_of(readings: Sequence[EngineReading], load: Load, latency: Latency) -> Work | None:
    """The work of the scrapes of one epoch, oldest first; ``None`` without any load."""
    every = histories(readings)
    busy = [replica for reading in readings for replica in reading.replicas if _runs(replica)]
    if not busy or not load.span_seconds:
        return None
    tokens = observed(every, lambda replica: replica.iteration_tokens)
    steps_per_second = load.steps_per_second
    step = ratio(len(busy), len(readings) * steps_per_second) if steps_per_second else latency.inter_token_mean_seconds
    running = mean([replica.requests_running for replica in busy])
    prompt = observed_mean(every, lambda replica: replica.request_prompt_tokens)
    prompt = prompt if prompt is not None else ratio(load.prompt_tokens_per_second, load.requests_started_per_second)
    context = _context(busy, prompt, observed_mean(every, lambda replica: replica.request_generation_tokens))
    per_step = steps_per_second or ratio(len(busy) / len(readings), step)
    decode = ratio(load.generation_tokens_per_second, per_step)
    kinds = _kinds(tokens, readings[-1].facts.max_num_batched_tokens)
    if not kinds and (mixed := total([load.prompt_tokens_per_second, load.generation_tokens_per_second])):
        kinds = ((mixed / per_step, 1.0),) if per_step else ()
    return Work(
        step_seconds=step,
        steps=tuple((_step(tokens, decode, running, context, prompt), share) for tokens, share in kinds),
        decode_tokens=decode,
        context_tokens=context,
        running=running,
        waiting=mean([waiting_of(replica) for replica in busy]),
        prompt_tokens=prompt,
        computed_prompt_tokens=ratio(load.prompt_tokens_per_second, load.requests_started_per_second),
        demand_ratio=_demand(readings, load),
    )


def _runs(replica: ReplicaReading) -> bool:
    """A replica that doesn't say how many run is taken to be at work."""
    return replica.requests_running is None or (known(replica.requests_running) or 0.0) > 0


def _context(busy: Sequence[ReplicaReading], prompt: float | None, generation: float | None) -> float | None:
    """Tokens that a running request attends to: those that its replica holds, or a prompt and half an answer.

    The larger one: blocks that requests share are held once, and each of them reads them.
    """
    held = [
        ratio(replica.kv_cache_usage_ratio * replica.kv_cache_capacity_tokens, replica.requests_running)
        for replica in busy
        if replica.kv_cache_usage_ratio is not None and replica.kv_cache_capacity_tokens is not None
    ]
    told = None if prompt is None else prompt + (generation or 0.0) / 2
    return max((each for each in (mean(held), told) if each is not None), default=None)


def _kinds(tokens: Histogram | None, budget: int | None) -> tuple[tuple[float, float], ...]:
    """The buckets as (tokens, share), by their middle; all of them shifted so that the sum is what was counted."""
    if tokens is None or tokens.count <= 0:
        return ()
    middles, lower, below = [], 0.0, 0.0
    for bound, count in zip(tokens.bounds, tokens.counts, strict=True):
        # What is above the last edge is at most a full budget.
        upper = bound if bound < float("inf") else max(lower, float(budget or 0))
        if count > below:
            middles.append((max(1.0, (lower + upper) / 2), count - below))
        lower, below = bound, count
    guessed = sum(middle * count for middle, count in middles)
    shift = tokens.sum / guessed if guessed > 0 and tokens.sum > 0 else 1.0
    return tuple((max(1.0, middle * shift), count / tokens.count) for middle, count in middles)


def _step(
    tokens: float, decode: float | None, running: float | None, context: float | None, prompt: float | None
) -> StepWork:
    """One kind of step: as many tokens of answers as a step has, the others are of prompts, which attend to half of
    their prompt on average."""
    usual = decode if decode is not None else running or 0.0
    answers = min(tokens, usual)
    prompts = tokens - answers
    attended = answers * (context or 0.0)
    half = (prompt or 0.0) / 2
    return StepWork(
        tokens=tokens,
        requests=answers + (1.0 if prompts else 0.0),
        attention_pairs=attended + prompts * half,
        kv_tokens_read=attended + (half if prompts else 0.0),
    )


def _demand(readings: Sequence[EngineReading], load: Load) -> float | None:
    """By how much the queue of the newer half is longer than that of the older."""
    waiting = [total([waiting_of(replica) for replica in reading.replicas]) for reading in readings]
    half = len(waiting) // 2
    older, newer = mean(waiting[:half]), mean(waiting[half:])
    started, span = load.requests_started_per_second, load.span_seconds
    if older is None or newer is None or not started:
        return None
    return known(1.0 + max(0.0, newer - older) / (span / 2) / started)
