"""scheduler: a configured limit holds requests back while memory and compute have room.

Claims: batch slots (max_num_seqs) or the token budget of a step (max_num_batched_tokens) are used up.
Decides: a queue before a replica that runs max_num_seqs; or steps that fill the token budget while the GPU has room.
Neither limit is in vLLM's /metrics. Where max_num_seqs is not given, a queue that always stands before the same number
of running requests hints at one: *inferred*, at most 0.75.
Contradicted by: a KV cache that is nearly full, preemption, steps paced by compute (then larger ones only take
longer), decode that is already slower than its objective, or would be if all who wait ran. A full budget is no limit
where such a step's time is compute by the roofline of model and card; where these are not known, where it has more than
``step_tokens_certain`` tokens. Fallback: with KV usage unknown the score is capped at 0.7; it abstains when running or
waiting is unknown. Advice: raise the limit that is full.
"""

from pinchpoint.diagnosis.judgement import Judgement, count, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.pace import (
    computing_leaves_no_room,
    more_running_harms,
    paced_by_compute,
    tokens_leave_no_room,
)
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence

_SAID_BY = {
    "command_line": ", from its command line",
    "log": ", from its start-up log",
    "settings": ", from local_engine",
}


def scheduler(signals: Signals, thresholds: Thresholds) -> Judgement:
    load, strain = signals.load, strain_of(signals, thresholds)
    missing = missing_of(
        requests_running=load.requests_running,
        requests_waiting=load.requests_waiting,
        kv_cache_usage_ratio=load.kv_cache_usage_ratio,
        max_num_seqs=signals.facts.max_num_seqs,
    )
    if load.requests_running is None or load.requests_waiting is None:
        return Judgement(bottleneck=Bottleneck.SCHEDULER, score=None, missing=missing)
    slots, budget = _slots(signals, thresholds), _budget(signals, thresholds)
    room, against = _room(signals, thresholds)
    # A prompt that takes many small steps is late without a queue.
    score = max(strain.queue * slots, strain.first_token * budget) * room
    if load.kv_cache_usage_ratio is None:
        score = min(score, 0.7)
    if load.moved is False:
        score = 0.0
    return Judgement(
        bottleneck=Bottleneck.SCHEDULER,
        score=score,
        why=_why(signals, full_slots=slots >= budget),
        evidence=lambda: _evidence(signals, thresholds) + strain.evidence,
        contradicted_by=against,
        missing=missing,
    )


def _slots(signals: Signals, thresholds: Thresholds) -> float:
    load = signals.load
    if load.queue_held_by_slots_share is not None:
        share = load.queue_held_by_slots_share
        return ramp(share, thresholds.slots_share_begins, thresholds.slots_share_certain)
    if signals.facts.max_num_seqs:  # known, and no scrape had a queue
        return 0.0
    return 0.75 * ramp(load.queue_plateau_share, thresholds.slots_share_begins, thresholds.slots_share_certain)


def _budget(signals: Signals, thresholds: Thresholds) -> float:
    """Full steps, as far as they are too small to be compute-bound."""
    share = signals.roofline.roofline_compute_share
    full = ramp(signals.load.token_budget_share, thresholds.budget_share_begins, thresholds.budget_share_certain)
    if share is not None:
        return full * (1.0 - ramp(share, thresholds.compute_share_begins, thresholds.compute_share_certain))
    return full * (1.0 - ramp(signals.load.step_tokens, thresholds.step_tokens_begins, thresholds.step_tokens_certain))


def _room(signals: Signals, thresholds: Thresholds) -> tuple[float, tuple[Evidence, ...]]:
    """What is left of the claim (0..1) by the room in memory and compute, and what took it away."""
    load = signals.load
    room, against = 1.0, list[Evidence | None]()
    kv = load.queue_kv_cache_usage_ratio
    if kv is not None and kv > thresholds.kv_room_ratio:
        room *= 1.0 - 0.8 * ramp(kv, thresholds.kv_room_ratio, 1.0)
        against.append(fact("queue_kv_cache_usage_ratio", kv, "KV cache at {value} where the queue is", percent))
    if (load.preemptions_per_second or 0) >= thresholds.preemptions_per_second:
        room *= 0.5
        against.append(Evidence(signal="preemptions_per_second", text="requests are preempted: memory is short"))
    tensor = signals.devices.gpu_tensor_active_ratio
    computing, late = computing_leaves_no_room(signals, thresholds), tokens_leave_no_room(signals, thresholds)
    unknown = paced_by_compute(signals, thresholds) is None
    if unknown and tensor is not None and tensor >= thresholds.tensor_active_certain:
        room *= 0.6
        against.append(fact("gpu_tensor_active_ratio", tensor, "tensor cores {value} busy", percent))
    room *= (1.0 - 0.7 * computing) * (1.0 - 0.6 * late)
    return room, gathered(*against, *more_running_harms(signals, late, computing))


def _why(signals: Signals, *, full_slots: bool) -> str:
    limit = signals.facts.max_num_seqs
    if not full_slots:
        return "requests wait while steps are at max_num_batched_tokens and the GPU has room"
    if limit:
        said_by = _SAID_BY.get(signals.facts.origins.get("max_num_seqs", ""), "")
        return (
            f"requests wait while all {limit} batch slots (max_num_seqs{said_by}) are taken and the KV cache has room"
        )
    running = count(signals.inferred_max_num_seqs or signals.load.requests_running or 0.0)
    return f"requests wait while {running} run, never more: a limit like max_num_seqs (inferred)"


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    load = signals.load
    inferred = None if signals.facts.max_num_seqs else load.queue_plateau_share
    full_steps = load.token_budget_share if (load.token_budget_share or 0) > thresholds.budget_share_begins else None
    return gathered(
        fact(
            "queue_held_by_slots_share",
            load.queue_held_by_slots_share,
            "the queue waited for full batch slots in {value} of its scrapes",
            percent,
            thresholds.slots_share_certain,
        ),
        fact(
            "queue_plateau_share",
            inferred,
            "the queue waited at the same number of running requests in {value} of its scrapes (inferred limit)",
            percent,
            thresholds.slots_share_certain,
        ),
        fact(
            "token_budget_share",
            full_steps,
            "steps fill {value} of max_num_batched_tokens",
            percent,
            thresholds.budget_share_certain,
        ),
        fact(
            "queue_kv_cache_usage_ratio",
            load.queue_kv_cache_usage_ratio,
            "KV cache at {value} where the queue is",
            percent,
            thresholds.kv_room_ratio,
        ),
    )
