"""kv_capacity: the memory wall.

Claims: requests wait, or are preempted, because the KV cache has no room.
Decides: KV usage at ``kv_full_ratio`` (or no room for one more request of the mean size) AND a queue on the same
replica, or preemptions. Each alone is nothing: a full cache without a queue is memory in use, and a queue before a free
cache has another cause. The waiting that counts is for capacity, where the engine tells its reasons.
Supports: preemption, which vLLM does only when it is out of blocks.
Contradicted by: batch slots that are full too, without preemption (then more memory would admit nobody); tokens that
are late already or would be if all who wait ran, and steps that are paced by compute (then more requests in memory
would only share what there is; not where preempted requests are computed again, so that steps take far longer than
their tokens); counters that stand still (gauges freeze at their last value).
Fallback: preemptions alone, with KV usage unknown or not seen full, give at most 0.6; without either it abstains.
Thresholds: .90 as in vllm-doctor and pping-lang, with a queue or preemption as in inferpilot; llm-d's .80 is for
planning. Advice: a larger share of the memory, fp8 KV cache, smaller weights, then another replica. A lower
max-model-len creates no blocks: it is advised only where one request may take most of the pool.
"""

from pinchpoint.diagnosis.judgement import Judgement, either, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.pace import computing_leaves_no_room, more_running_harms, tokens_leave_no_room, unseen_work
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def kv_capacity(signals: Signals, thresholds: Thresholds) -> Judgement:
    load = signals.load
    preempting = ramp(load.preemptions_per_second, 0.0, thresholds.preemptions_per_second)
    missing = missing_of(
        kv_cache_usage_ratio=load.kv_cache_usage_ratio,
        requests_waiting=load.requests_waiting,
        preemptions_per_second=load.preemptions_per_second,
    )
    if load.kv_cache_usage_ratio is None and not preempting:
        return Judgement(bottleneck=Bottleneck.KV_CAPACITY, score=None, missing=missing)
    strain = strain_of(signals, thresholds)
    held = ramp(load.queue_held_by_kv_share, thresholds.kv_share_begins, thresholds.kv_share_certain) * strain.queue
    thrash = preempting * (0.6 + 0.3 * ramp(load.kv_full_share, 0.0, thresholds.kv_share_begins))
    score, against = either(0.9 * held, thrash), tuple[Evidence, ...]()
    slots = load.queue_held_by_slots_share
    if slots is not None and not preempting and slots >= thresholds.slots_share_certain:
        text = "batch slots full in {value} of the queue"
        score, against = 0.6 * score, gathered(fact("queue_held_by_slots_share", slots, text, percent))
    left, useless = _more_would_help(signals, thresholds)
    score, against = score * left, (*against, *useless)
    if load.moved is False:
        score, against = 0.0, (Evidence(signal="seconds_without_progress", text="no token counter moves"),)
    return Judgement(
        bottleneck=Bottleneck.KV_CAPACITY,
        score=score,
        why=_why(signals),
        evidence=lambda: _evidence(signals, thresholds) + strain.evidence,
        contradicted_by=against,
        missing=missing,
    )


def _more_would_help(signals: Signals, thresholds: Thresholds) -> tuple[float, tuple[Evidence, ...]]:
    """What is left of the claim (0..1) by what more requests in memory would gain, and what took it away."""
    twice = unseen_work(signals, thresholds)
    late = tokens_leave_no_room(signals, thresholds) * (1.0 - twice)
    computing = computing_leaves_no_room(signals, thresholds) * (1.0 - twice)
    return (1.0 - 0.6 * late) * (1.0 - 0.7 * computing), more_running_harms(signals, late, computing)


def _why(signals: Signals) -> str:
    load = signals.load
    harm = ["requests wait for room"] if load.requests_waiting else []
    harm += ["running ones are preempted"] if load.preemptions_per_second else []
    full = "" if load.kv_cache_usage_ratio is None else "the KV cache is full"
    return ": ".join(filter(None, (full, " and ".join(harm))))


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    load = signals.load
    peak = "" if load.kv_cache_usage_peak_ratio is None else f" and {percent(load.kv_cache_usage_peak_ratio)} at most"
    return gathered(
        fact(
            "kv_cache_usage_ratio",
            load.kv_cache_usage_ratio,
            f"{{value}} of the KV cache's blocks in use on average{peak}, threshold {{threshold}}",
            percent,
            thresholds.kv_full_ratio,
        ),
        fact(
            "queue_held_by_kv_share",
            load.queue_held_by_kv_share,
            "the queue waited for a full KV cache in {value} of its scrapes",
            percent,
            thresholds.kv_share_certain,
        ),
        fact(
            "preemptions_per_second",
            load.preemptions_per_second or None,
            "{value} preemptions a minute",
            lambda rate: f"{60 * rate:.2g}" if rate < 1 / 6 else f"{60 * rate:.0f}",
            thresholds.preemptions_per_second,
        ),
    )
