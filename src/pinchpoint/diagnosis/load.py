"""What the engine has to do, what holds it up, and how fast it works it off."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.moments import Moment, moment_of, waiting_of
from pinchpoint.diagnosis.rates import (
    Histories,
    History,
    histories,
    known,
    last_rise,
    mean,
    observed,
    rate,
    ratio,
    total,
)
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, ReplicaReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Means over the window unless named otherwise; a share is of the scrapes that say it. ``None`` is unknown."""

    scrapes: float = 0.0
    span_seconds: float = 0.0
    requests_running: float | None = None
    requests_running_last: float | None = None
    requests_waiting: float | None = None  # for capacity
    requests_waiting_last: float | None = None
    requests_deferred: float | None = None  # waiting for something that is no capacity of the engine
    requests_started_per_second: float | None = None  # first tokens
    queue_share: float | None = None  # scrapes with a queue, in the window or its newer half, whichever is less
    queue_wait_seconds: float | None = None  # what a new request may expect: waiting over started per second (Little)
    queue_held_by_kv_share: float | None = None  # of the scrapes with a queue: its replica's KV cache was full
    queue_held_by_slots_share: float | None = None  # of the scrapes with a queue: its replica ran max_num_seqs
    queue_plateau_share: float | None = None  # of the scrapes with a queue: as many ran as ever did
    queue_kv_cache_usage_ratio: float | None = None  # of the scrapes with a queue: the fullest replica that has one
    kv_cache_usage_ratio: float | None = None  # the fullest replica
    kv_cache_usage_peak_ratio: float | None = None
    kv_full_share: float | None = None
    kv_cache_capacity_tokens: float | None = None  # of one replica, the smallest
    preemptions_per_second: float | None = None
    prefix_cache_hit_ratio: float | None = None  # of the prompt tokens looked up
    prompt_tokens_per_second: float | None = None  # computed: what the prefix cache served is no work
    generation_tokens_per_second: float | None = None
    prefill_token_share: float | None = None  # computed prompt tokens over all computed tokens
    step_tokens: float | None = None  # tokens per engine step
    steps_per_second: float | None = None
    token_budget_share: float | None = None  # step_tokens over max_num_batched_tokens
    seconds_without_progress: float | None = None  # since a token counter last moved, at most the span
    replicas_seen: float | None = None  # that made steps
    replicas_stuck: float | None = None  # that hold requests and have made no token for the tolerated time
    quiet_seconds: float | None = None  # since a request or a token was last seen, at most the span

    @property
    def moved(self) -> bool | None:
        """Whether any token was made in the window; ``None`` when no counter tells."""
        still = self.seconds_without_progress
        return None if still is None else still < self.span_seconds

    @property
    def busy(self) -> bool:
        """Whether the newest scrape shows work."""
        return (self.requests_running_last or 0) + (self.requests_waiting_last or 0) + (self.requests_deferred or 0) > 0


def _steps(replica: ReplicaReading) -> float | None:
    return replica.steps_total


_TOKENS: tuple[Callable[[ReplicaReading], float | None], ...] = (
    lambda replica: replica.generation_tokens_total,
    lambda replica: replica.prompt_tokens_total,
    lambda replica: replica.iteration_tokens.count if replica.iteration_tokens else None,
    _steps,
)


def load_of(readings: Sequence[EngineReading], thresholds: Thresholds) -> Load:
    """The load of one engine from the scrapes of one epoch, oldest first."""
    if not readings:
        return Load()
    moments = [moment_of(reading, thresholds) for reading in readings]
    queued = [moment for moment in moments if (moment.waiting or 0) > 0]
    every = histories(readings)
    span = readings[-1].at - readings[0].at
    waiting = mean([moment.waiting for moment in moments])
    started = _started(every)
    prompt, generation = _computed(every), rate(every, lambda replica: replica.generation_tokens_total)
    steps = observed(every, lambda replica: replica.iteration_tokens)
    step_tokens, step_count = (known(steps.mean), known(steps.count)) if steps else (None, None)
    progress = {name: _last_progress(history) for name, history in every.items()}
    still = _seconds_without_progress(every, progress, readings[0].at, readings[-1])
    peaks = [moment.kv for moment in moments if moment.kv is not None]
    return Load(
        scrapes=float(len(readings)),
        span_seconds=span,
        requests_running=mean([moment.running for moment in moments]),
        requests_running_last=moments[-1].running,
        requests_waiting=waiting,
        requests_waiting_last=moments[-1].waiting,
        requests_deferred=moments[-1].deferred,
        requests_started_per_second=started,
        queue_share=_queue_share(moments),
        queue_wait_seconds=_queue_wait(waiting, started, span),
        queue_held_by_kv_share=_share([moment.held_by_kv for moment in queued]),
        queue_held_by_slots_share=_share([moment.held_by_slots for moment in queued]),
        queue_plateau_share=_plateau(queued, thresholds),
        queue_kv_cache_usage_ratio=mean([moment.queue_kv for moment in queued]),
        kv_cache_usage_ratio=mean(peaks),
        kv_cache_usage_peak_ratio=max(peaks, default=None),
        kv_full_share=_share([moment.kv_full for moment in moments]),
        kv_cache_capacity_tokens=min(
            (tokens for r in readings[-1].replicas if (tokens := known(r.kv_cache_capacity_tokens))), default=None
        ),
        preemptions_per_second=rate(every, lambda replica: replica.preemptions_total),
        prefix_cache_hit_ratio=ratio(
            rate(every, lambda replica: replica.prefix_cache_hits_total),
            rate(every, lambda replica: replica.prefix_cache_queries_total),
        ),
        prompt_tokens_per_second=prompt,
        generation_tokens_per_second=generation,
        prefill_token_share=ratio(prompt, total([prompt, generation]) if generation is not None else None),
        step_tokens=step_tokens,
        steps_per_second=ratio(step_count, span),
        token_budget_share=ratio(step_tokens, readings[-1].facts.max_num_batched_tokens),
        seconds_without_progress=still,
        replicas_seen=_seen(every),
        replicas_stuck=_stuck(every, progress, readings[-1], thresholds),
        quiet_seconds=_quiet(moments, still),
    )


def _computed(every: Histories) -> float | None:
    """Prompt tokens computed per second: as the engine says, else all prompt tokens less what the prefix cache hit.

    The share of hits is taken, not their number: old engines count blocks. Where requests are preempted some of them
    count what is computed again as hits (vLLM issue 25780), so none are believed.
    """
    computed = rate(every, lambda replica: replica.prompt_tokens_computed_total)
    if computed is not None:
        return computed
    prompt = rate(every, lambda replica: replica.prompt_tokens_total)
    if prompt is None or rate(every, lambda replica: replica.preemptions_total):
        return prompt
    hits = rate(every, lambda replica: replica.prefix_cache_hits_total)
    queries = rate(every, lambda replica: replica.prefix_cache_queries_total)
    if queries is None:
        return max(0.0, prompt - (hits or 0.0))
    return prompt * (1.0 - min(1.0, ratio(hits, queries) or 0.0))


def _started(every: Histories) -> float | None:
    return rate(every, lambda replica: replica.ttft_seconds.count if replica.ttft_seconds else None)


def _queue_share(moments: Sequence[Moment]) -> float | None:
    """The newer half is looked at too, so that a queue that is gone stops counting soon."""
    flags = [None if moment.waiting is None else moment.waiting > 0 for moment in moments]
    shares = [share for part in (flags, flags[len(flags) // 2 :]) if (share := _share(part)) is not None]
    return min(shares, default=None)


def _queue_wait(waiting: float | None, started: float | None, span: float) -> float | None:
    """Little's law. When nothing started in the whole span, a request waits at least that long."""
    if waiting is None or started is None or span <= 0:
        return None
    return known(waiting / max(started, 1.0 / span))


def _plateau(queued: Sequence[Moment], thresholds: Thresholds) -> float | None:
    """How often the queue stood before the same number of running requests: a limit that nobody told us."""
    running = [moment.running for moment in queued if moment.running is not None]
    if len(running) < thresholds.plateau_scrapes:
        return None
    return _share([count > 0 and count >= thresholds.slots_full_ratio * max(running) for count in running])


def _last_progress(history: History) -> float | None:
    """When a token counter of one replica last moved; ``None``: never that is seen."""
    return max((at for pick in _TOKENS if (at := last_rise({"": history}, pick)) is not None), default=None)


def _seconds_without_progress(
    every: Histories, progress: Mapping[str, float | None], first: float, newest: EngineReading
) -> float | None:
    if not any(_tells(every, pick) for pick in _TOKENS):
        return None
    last = max((at for name in every if (at := progress[name]) is not None), default=None)
    if last is None and newest.tokens_at_end and not _tells(every, _steps):
        return None  # a request may run longer than is looked back
    return newest.at - (first if last is None else last)


def _tells(every: Histories, pick: Callable[[ReplicaReading], float | None]) -> bool:
    return any(pick(replica) is not None for history in every.values() for _, replica in history)


def _seen(every: Histories) -> float | None:
    """Replicas that made any step within the window."""
    moved = [last_rise({name: history}, _step_count) is not None for name, history in every.items()]
    return float(sum(moved)) or None


def _step_count(replica: ReplicaReading) -> float | None:
    return replica.iteration_tokens.count if replica.iteration_tokens else replica.steps_total


def _stuck(
    every: Histories, progress: Mapping[str, float | None], newest: EngineReading, thresholds: Thresholds
) -> float | None:
    """Replicas that hold requests and stand still, whatever the others do."""
    stuck = [
        still >= thresholds.stall_seconds + (0.0 if waiting_of(history[-1][1]) else newest.running_lag_seconds)
        for name, history in every.items()
        if (still := _seconds_without_progress({name: history}, progress, history[0][0], newest)) is not None
        and history[-1][0] == newest.at
        and _holds_requests(history[-1][1])
    ]
    return float(sum(stuck)) if stuck else None


def _holds_requests(replica: ReplicaReading) -> bool:
    return (known(replica.requests_running) or 0.0) + (waiting_of(replica) or 0.0) > 0


def _quiet(moments: Sequence[Moment], still: float | None) -> float | None:
    """Seconds since the last sign of work; ``None`` when neither requests nor tokens are counted."""
    counted = any(m.running is not None or m.waiting is not None for m in moments)
    if not counted and still is None:
        return None
    last_busy = max((moment.at for moment in moments if moment.busy), default=None)
    span = moments[-1].at - moments[0].at
    return min(span if last_busy is None else moments[-1].at - last_busy, span if still is None else still)


def _share(flags: Sequence[bool | None]) -> float | None:
    return mean([None if flag is None else float(flag) for flag in flags])
