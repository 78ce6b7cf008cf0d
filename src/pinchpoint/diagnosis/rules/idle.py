"""idle: nothing to do.

Claims: no request has run or waited and no token was made for ``idle_seconds``, or for as long as the engine is being
watched. Decides: running, waiting and the token counters together, because gauges alone freeze when an engine stops
stepping. Fallback: with only one of the two kinds known, that one decides. Contradicted by any token. Advice: none.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def idle(signals: Signals, thresholds: Thresholds) -> Judgement:
    load = signals.load
    if load.quiet_seconds is None:
        return Judgement(bottleneck=Bottleneck.IDLE, score=None, missing=("requests_running",))
    if load.busy or load.quiet_seconds < min(thresholds.idle_seconds, load.span_seconds):
        return Judgement(bottleneck=Bottleneck.IDLE, score=0.0)
    both = load.requests_running is not None and load.seconds_without_progress is not None
    why = f"no request and no token for {duration(load.quiet_seconds)}"
    return Judgement(
        bottleneck=Bottleneck.IDLE,
        score=1.0 if both else 0.8,
        why=why,
        evidence=(
            Evidence(signal="quiet_seconds", text=why, value=load.quiet_seconds, threshold=thresholds.idle_seconds),
        ),
        gate=True,
    )
