"""idle: nothing to do.

Claims: no request has run or waited and no token was made for ``idle_seconds``, or for as long as the engine is being
watched. Decides: running, waiting and the token counters together, because gauges alone freeze when an engine stops
stepping. Fallback: with only one of the two kinds known, that one decides. Contradicted by any token, but for those of
our own probes: no more requests started than probes were sent, one more in flight, and none waits; and by probes that
get no answer, for then nobody may be able to ask. Advice: none.
"""

from pinchpoint.diagnosis.clients import gets_no_answer
from pinchpoint.diagnosis.judgement import Judgement, count, duration
from pinchpoint.diagnosis.quiet import nobody_asks
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def idle(signals: Signals, thresholds: Thresholds) -> Judgement:
    load = signals.load
    if load.quiet_seconds is None:
        return Judgement(bottleneck=Bottleneck.IDLE, score=None, missing=("requests_running",))
    if not nobody_asks(signals, thresholds):
        return Judgement(bottleneck=Bottleneck.IDLE, score=0.0)
    if gets_no_answer(signals):  # somebody does ask: we
        return Judgement(bottleneck=Bottleneck.IDLE, score=0.4, evidence=lambda: (_quiet(signals, thresholds),))
    both = load.requests_running is not None and load.seconds_without_progress is not None
    probed = signals.own_probes is not None
    return Judgement(
        bottleneck=Bottleneck.IDLE,
        score=1.0 if both else 0.8,
        # Without figures: it stays the same sentence from tick to tick.
        why="nothing but our own probes asks for tokens" if probed else "no request and no token",
        evidence=lambda: (_probes(signals) if probed else _quiet(signals, thresholds),),
        gate=True,
    )


def _probes(signals: Signals) -> Evidence:
    sent = signals.own_probes or 0.0
    text = f"{count(sent)} probes of ours ended in the last {duration(signals.load.span_seconds)}, no other request did"
    return Evidence(signal="own_probes", text=text, value=sent)


def _quiet(signals: Signals, thresholds: Thresholds) -> Evidence:
    quiet = signals.load.quiet_seconds or 0.0
    text = f"neither was seen for {duration(quiet)}"
    return Evidence(signal="quiet_seconds", text=text, value=quiet, threshold=thresholds.idle_seconds)
