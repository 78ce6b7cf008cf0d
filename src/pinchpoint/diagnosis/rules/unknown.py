"""unknown: the honest answer.

Claims: somebody suffers, or too little has been seen, and no rule has its evidence. Never a guess: it names what was
ruled out and which signals would have decided. Advice: give the signals that are missing.
"""

from collections.abc import Sequence

from pinchpoint.diagnosis.judgement import Judgement, count, duration
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck

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
        evidence=lambda: strain.evidence,
        contradicted_by=tuple(
            fact
            for judgement in weighed
            if judgement.bottleneck is not Bottleneck.HEALTHY
            for fact in judgement.contradicted_by
        ),
        missing=missing if scrapes >= thresholds.min_scrapes else (),
    )
