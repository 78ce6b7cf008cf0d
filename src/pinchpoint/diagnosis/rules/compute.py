"""compute: prefill is at what the tensor cores can do.

Claims: first tokens (or the tokens between) are late because prompts keep the GPU computing.
Decides: objectives missed or a queue; and steps that are compute-bound. Where model and card are known: their time is
compute by the roofline of the actual steps, contexts and precision, and tensor cores are active (measured, else model
FLOPs over the published peak). Else: computed prompt tokens dominate all computed tokens, tensor cores are active, and
a step has more tokens than the card's ridge (peak FLOP/s over bandwidth, about 300 in bf16).
Or, without a queue: first tokens are late, most of that is prefill, and a prompt's prefill takes not much longer than
its FLOPs: as fast as this card goes.
Supports: inter-token p99 over p50 of 3 and more (prefill breaks into decode; Sarathi-Serve, arXiv 2403.02310), prefill
time above queue time. NVML utilisation supports nothing (it is a share of time), but a low one contradicts: a GPU that
is free half of the time is not what everybody waits for.
Contradicted by: a queue before a full KV cache or full batch slots (less where the roofline says that steps are
compute: then the queue fills whatever there is), tensor cores at rest, low GPU utilisation.
Fallback: without tensor activity and FLOPs, tokens per step decide, at most 0.85; without token counters it abstains.
Advice: cache prefixes, tune the token budget, FP8, then another replica.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration, fact, gathered, missing_of, percent, ramp
from pinchpoint.diagnosis.pace import compute_duty, decode_is_late, gains_by_more_running, paced_by_compute, unseen_work
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import Strain, strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def compute(signals: Signals, thresholds: Thresholds) -> Judgement:
    load, devices = signals.load, signals.devices
    missing = missing_of(
        prefill_token_share=load.prefill_token_share,
        step_tokens=load.step_tokens,
        gpu_tensor_active_ratio=devices.gpu_tensor_active_ratio,
    )
    if load.prefill_token_share is None or (load.step_tokens is None and compute_duty(signals) is None):
        return Judgement(bottleneck=Bottleneck.COMPUTE, score=None, missing=missing)
    strain = strain_of(signals, thresholds)
    suffering = max(strain.first_token, float(strain.inter_token is not None), 0.2 * strain.nearly)
    paced = paced_by_compute(signals, thresholds)
    less, against = _against(signals, thresholds, paced or 0.0)
    # Where decode alone is late, no faster prompt makes it early.
    decode = decode_is_late(signals, thresholds) if strain.inter_token and not strain.first_token else 0.0
    computing = _computing(signals, thresholds) if paced is None else paced
    return Judgement(
        bottleneck=Bottleneck.COMPUTE,
        score=max(suffering * computing * less, _one_prompt(signals, strain, thresholds)) * (1.0 - 0.8 * decode),
        why=f"computing prompts fills the engine's steps: {_harm(strain)}",
        evidence=lambda: strain.evidence + _evidence(signals, thresholds),
        contradicted_by=against,
        missing=missing,
    )


def _harm(strain: Strain) -> str:
    if strain.ttft:
        return "first tokens are late"
    return "the tokens in between are late" if strain.inter_token else "requests queue"


def _one_prompt(signals: Signals, strain: Strain, thresholds: Thresholds) -> float:
    """How surely a prompt alone, without a queue, takes as long as its FLOPs (0..1)."""
    latency = signals.latency
    reached = ratio(signals.roofline.prompt_roofline_seconds, latency.prefill_mean_seconds)
    if strain.ttft is None or strain.queue > 0 or (latency.prefill_time_share or 0.0) <= 0.5:
        return 0.0
    at_limit = ramp(reached, thresholds.prompt_at_limit_begins, thresholds.prompt_at_limit_certain)
    of_ttft = ramp(ratio(latency.prefill_mean_seconds, signals.slo.ttft_seconds), 0.3, 0.6)
    return 0.95 * at_limit * of_ttft


def _computing(signals: Signals, thresholds: Thresholds) -> float:
    """How surely compute paces the steps (0..1), where no roofline is known: prompts, tensor cores, large steps."""
    share = signals.load.prefill_token_share
    return ramp(share, thresholds.prefill_share_begins, thresholds.prefill_share_certain) * _large(signals, thresholds)


def _large(signals: Signals, thresholds: Thresholds) -> float:
    duty, steps = compute_duty(signals), signals.load.step_tokens
    large = ramp(steps, thresholds.step_tokens_begins, thresholds.step_tokens_certain)
    if duty is None:
        return 0.85 * large
    busy = ramp(duty, thresholds.tensor_active_begins, thresholds.tensor_active_certain)
    if duty < thresholds.tensor_active_begins:  # large steps, tensor cores at rest: they wait for something else
        return 0.3 * large
    return busy if steps is None else (busy + large) / 2


def _against(signals: Signals, thresholds: Thresholds, paced: float) -> tuple[float, tuple[Evidence, ...]]:
    """What is left of the claim (0..1) by rivals that hold the queue, and what took it away."""
    load, devices = signals.load, signals.devices
    held = ramp(load.queue_held_by_kv_share, thresholds.kv_share_begins, thresholds.kv_share_certain)
    slots = ramp(load.queue_held_by_slots_share, thresholds.slots_share_begins, thresholds.slots_share_certain)
    util = devices.gpu_utilization_ratio
    free = util is not None and util < thresholds.gpu_free_ratio
    # Of requests that are preempted the computing is done twice: then memory comes first.
    paced *= (1.0 - unseen_work(signals, thresholds)) * (1.0 - gains_by_more_running(signals))
    less = (
        (1.0 - 0.7 * held * (1.0 - paced))
        * (1.0 - 0.5 * slots * (1.0 - paced))
        * (0.2 if free else 1.0)
        * (0.0 if load.moved is False else 1.0)
    )
    return less, gathered(
        fact("queue_held_by_kv_share", load.queue_held_by_kv_share if held else None, "KV full in {value}", percent),
        fact(
            "queue_held_by_slots_share",
            load.queue_held_by_slots_share if slots else None,
            "slots full in {value}",
            percent,
        ),
        fact("gpu_utilization_ratio", util if free else None, "the GPU works only {value} of the time", percent),
    )


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    load, latency, devices = signals.load, signals.latency, signals.devices
    usual, worst = latency.inter_token_p50_seconds, latency.inter_token_p99_seconds
    slowest = worst.at_least if worst and worst.value is None else worst.value if worst else None
    # Where the median lies in the lowest bucket, its upper edge: the spread is that much at least.
    typical = usual.at_most if usual and usual.value is None else usual.value if usual else None
    spread = ratio(slowest, typical)
    broken = slowest if spread is not None and spread >= thresholds.itl_spread else None
    budget = signals.facts.max_num_batched_tokens or float("inf")
    share = latency.prefill_time_share
    longer = share if share is not None and share > 0.5 else None
    return gathered(
        fact(
            "prefill_token_share",
            load.prefill_token_share,
            "prompts are {value} of the tokens computed",
            percent,
            thresholds.prefill_share_certain,
        ),
        fact(
            "step_tokens",
            None if load.step_tokens is None else min(load.step_tokens, budget),
            "about {value} tokens a step, compute-bound from {threshold}",
            lambda tokens: f"{tokens:,.0f}",
            thresholds.step_tokens_certain,
        ),
        fact(
            "roofline_compute_share",
            signals.roofline.roofline_compute_share,
            "computing takes {value} of a step's time by this model and card, moving bytes the rest",
            percent,
            thresholds.compute_share_certain,
        ),
        fact(
            "prompt_roofline_seconds",
            signals.roofline.prompt_roofline_seconds if latency.prefill_mean_seconds is not None else None,
            f"a prompt takes {{value}} at peak, observed {duration(latency.prefill_mean_seconds or 0.0)}",
            duration,
        ),
        fact(
            "gpu_tensor_active_ratio",
            devices.gpu_tensor_active_ratio,
            "tensor cores busy {value} of the time; prefill at its limit shows {threshold} and more",
            percent,
            thresholds.tensor_active_certain,
        ),
        fact(
            "model_flops_utilization_ratio",
            signals.model_flops_utilization_ratio,
            "{value} of the published peak; in practice heavy work reaches about {threshold}",
            percent,
            thresholds.flops_reached_ratio,
        ),
        fact("inter_token_p99_seconds", broken, "one in 100 tokens takes {value}", duration),
        fact("prefill_time_share", longer, "prefill is {value} of queue and prefill time", percent),
    )
