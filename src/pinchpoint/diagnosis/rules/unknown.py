"""unknown: the honest answer.

Claims: somebody suffers, or too little has been seen, and no rule has its evidence. Never a guess: it names what was
ruled out and which signals would have decided. Advice: give the signals that are missing.
"""

from collections.abc import Sequence

from pinchpoint.diagnosis.judgement import Judgement, count, duration
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck

# A signal that is named otherwise than the field of a reading it is made of.
_FIELDS = {
    "ttft_judged_seconds": "ttft_seconds",
    "inter_token_mean_seconds": "inter_token_seconds",
    "step_tokens": "iteration_tokens",
    "generation_tokens_per_second": "generation_tokens_total",
    "prefill_token_share": "prompt_tokens_total",
}

# Plain to see, so nobody needs to hear that they are ruled out.
_PLAIN = (Bottleneck.NO_DATA, Bottleneck.SLEEPING, Bottleneck.IDLE, Bottleneck.STALLED, Bottleneck.HEALTHY)


def unknown(signals: Signals, thresholds: Thresholds, weighed: Sequence[Judgement]) -> Judgement:
    missing = tuple(dict.fromkeys(name for judgement in weighed for name in judgement.missing))
    strain = strain_of(signals, thresholds)
    scrapes = signals.load.scrapes
    if scrapes < thresholds.min_scrapes:
        why = f"starting: {count(scrapes)} of the {thresholds.min_scrapes} scrapes that a first verdict takes"
    elif signals.valueless:
        why = "the engine's metrics have no values yet: it warms up, or has served no request"
    elif strain.evidence:
        out = [j.bottleneck.value for j in weighed if j.score is not None and j.bottleneck not in _PLAIN]
        suffering = "requests are late" if strain.ttft or strain.inter_token else "requests queue"
        unweighed = [j.bottleneck.value for j in weighed if j.score is None and j.missing]
        blind = f"; not weighed for want of signals: {', '.join(unweighed)}" if unweighed else ""
        why = f"{suffering}, but no class has its evidence (ruled out: {', '.join(out) or 'none'}{blind})"
    elif signals.load.busy and signals.load.moved is False:
        why = f"no token for {duration(signals.load.seconds_without_progress or 0.0)}, too short to call it stalled"
    elif signals.probed is not None:
        why = "the engine exposes no metrics, and its probes and GPUs tell too little"
    else:
        why = "too little is measured to tell"
    return Judgement(
        bottleneck=Bottleneck.UNKNOWN,
        score=0.0,
        why=why,
        evidence=strain.evidence,
        contradicted_by=tuple(
            fact
            for judgement in weighed
            if judgement.bottleneck is not Bottleneck.HEALTHY
            for fact in judgement.contradicted_by
        ),
        missing=missing if scrapes >= thresholds.min_scrapes else (),
        advice=_give(missing, signals) if scrapes >= thresholds.min_scrapes else (),
    )


def _give(missing: Sequence[str], signals: Signals) -> tuple[Advice, ...]:
    """What can be given, and what this kind of engine has not to give."""
    never = [name for name in missing if _FIELDS.get(name, name) in signals.not_exposed]
    unseen = [name for name in missing if name.startswith("gpu_") and "gpu_readings" in missing]
    given = [name for name in missing if name not in (*never, *unseen)]
    words = [f"Give what is missing: {', '.join(given)}."] if given else []
    if unseen:
        words.append("Its GPUs are not watched here: run pinchpoint on their node, and set the engine's gpus.")
    if never:
        words.append(f"{signals.facts.kind or 'This kind of engine'} does not expose {', '.join(never)}.")
    return (Advice(action="add_signals", text=" ".join(words)),) if words else ()
