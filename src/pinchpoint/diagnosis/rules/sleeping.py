"""sleeping: the engine was put to sleep.

Claims: weights or cache are offloaded on request, so an idle look means nothing. Decides: vLLM's
``engine_sleep_state{sleep_state="awake"}`` is 0 on every replica. Fallback: an engine without that metric is never
called sleeping. Advice: wake it when it should serve.
"""

from pinchpoint.diagnosis.judgement import Judgement
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Evidence


def sleeping(signals: Signals, thresholds: Thresholds) -> Judgement:  # noqa: ARG001 - every rule has this signature
    if signals.awake is not False:
        return Judgement(bottleneck=Bottleneck.SLEEPING, score=0.0)
    return Judgement(
        bottleneck=Bottleneck.SLEEPING,
        score=1.0,
        why="the engine was put to sleep",
        evidence=(Evidence(signal="awake", text="its awake gauge is 0 on every replica", value=0.0),),
        advice=(Advice(action="wake_engine", text="POST /wake_up to the engine when it should serve."),),
        gate=True,
    )
