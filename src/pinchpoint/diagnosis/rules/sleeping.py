"""sleeping: the engine was put to sleep.

Claims: weights or cache are offloaded on request, so an idle look means nothing. Decides: vLLM's
``engine_sleep_state{sleep_state="awake"}`` is 0 on every replica. Fallback: an engine without that metric is never
called sleeping. Requests that wait do so until it wakes. Contradicted by requests that run and make tokens: then the
gauge is wrong. Advice: wake it when it should serve.
"""

from pinchpoint.diagnosis.judgement import Judgement, count
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def sleeping(signals: Signals, thresholds: Thresholds) -> Judgement:  # noqa: ARG001 - every rule has this signature
    if signals.awake is not False:
        return Judgement(bottleneck=Bottleneck.SLEEPING, score=0.0)
    load = signals.load
    asleep = Evidence(signal="awake", text="its awake gauge is 0 on every replica", value=0.0)
    if load.requests_running_last and load.seconds_without_progress == 0:
        return Judgement(bottleneck=Bottleneck.SLEEPING, score=0.4, evidence=lambda: (asleep,))
    waiting = load.requests_waiting_last or 0.0
    queue = (
        (Evidence(signal="requests_waiting_last", text=f"{count(waiting)} requests wait for it", value=waiting),)
        if waiting
        else ()
    )
    return Judgement(
        bottleneck=Bottleneck.SLEEPING,
        score=1.0,
        why="the engine was put to sleep" + (" while requests wait for it" if waiting else ""),
        evidence=lambda: (asleep, *queue),
        gate=True,
    )
