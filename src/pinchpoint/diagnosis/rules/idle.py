"""idle: nothing to do.

Claims: no request has run or waited and no token was made for ``idle_seconds``, or for as long as the engine is being
watched. Decides: running, waiting and the token counters together, because gauges alone freeze when an engine stops
stepping. Fallback: with only one of the two kinds known, that one decides. Contradicted by any token, but for those of
our own probes: no more requests started than probes were sent, one more in flight, and none waits. Advice: none.
"""

from pinchpoint.diagnosis.judgement import Judgement, duration
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def idle(signals: Signals, thresholds: Thresholds) -> Judgement:
    load = signals.load
    if load.quiet_seconds is None:
        return Judgement(bottleneck=Bottleneck.IDLE, score=None, missing=("requests_running",))
    quiet = not load.busy and load.quiet_seconds >= min(thresholds.idle_seconds, load.span_seconds)
    if not quiet and not _only_our_probes(signals):
        return Judgement(bottleneck=Bottleneck.IDLE, score=0.0)
    both = load.requests_running is not None and load.seconds_without_progress is not None
    why = f"no request and no token for {duration(load.quiet_seconds)}"
    if not quiet:
        why = f"nothing but our own probes for {duration(load.span_seconds)}"
    return Judgement(
        bottleneck=Bottleneck.IDLE,
        score=1.0 if both else 0.8,
        why=why,
        evidence=(
            Evidence(signal="quiet_seconds", text=why, value=load.quiet_seconds, threshold=thresholds.idle_seconds),
        ),
        gate=True,
    )


def _only_our_probes(signals: Signals) -> bool:
    load = signals.load
    if signals.own_probes is None or load.requests_started_per_second is None or load.requests_waiting != 0:
        return False
    in_flight = 1
    started = load.requests_started_per_second * load.span_seconds
    return started <= signals.own_probes + in_flight and (load.requests_running_last or 0) <= in_flight
