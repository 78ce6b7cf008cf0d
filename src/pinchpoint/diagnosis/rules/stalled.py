"""stalled: work is queued, no tokens come.

Claims: requests run or wait, and no token counter has moved for ``stall_seconds`` while scrapes are fresh. Decides: the
token and step counters. A full KV cache is no cause here: gauges freeze at their last value when an engine stops
stepping (vLLM issues 29928 and 22545). One replica of several that stands still is enough: what it holds is never
served, however well the others do. So are our own probes, that reach a server and get no token while no counter moves:
gauges can freeze at 0 too. Fallback: an engine without token counters is never called stalled. A single prompt
that is prefilled in one long step looks the same for that step, hence the grace; so does an engine whose count of
running requests outlasts them (SGLang pull requests 26495 and 31517), hence its lag. Advice: log, health, restart.
"""

from pinchpoint.diagnosis.clients import gets_stuck
from pinchpoint.diagnosis.judgement import Judgement, count, duration, fact, gathered, percent
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


def stalled(signals: Signals, thresholds: Thresholds) -> Judgement:
    load = signals.load
    still = load.seconds_without_progress
    if still is None:
        return Judgement(bottleneck=Bottleneck.STALLED, score=None, missing=("generation_tokens_per_second",))
    if signals.awake is False:  # it is not to make tokens
        return Judgement(bottleneck=Bottleneck.STALLED, score=0.0)
    if gets_stuck(signals) and not load.busy and load.moved is False:
        return _by_probes(signals)
    # A queue is a fact; a count of running requests may be an old one.
    lag = 0.0 if load.requests_waiting_last else signals.running_lag_seconds
    if not load.busy or still < thresholds.stall_seconds + lag:
        return _one_of_several(load.replicas_stuck or 0.0, thresholds)
    running, waiting = load.requests_running_last or 0.0, load.requests_waiting_last or 0.0
    text = f"no token counter has moved for {duration(still)}, {duration(thresholds.stall_seconds)} are tolerated"
    return Judgement(
        bottleneck=Bottleneck.STALLED,
        score=1.0,
        why=f"{count(running)} requests run and {count(waiting)} wait, but the engine makes no token",
        evidence=lambda: (
            Evidence(signal="seconds_without_progress", text=text, value=still, threshold=thresholds.stall_seconds),
        ),
        gate=True,
    )


def _by_probes(signals: Signals) -> Judgement:
    """Its gauges say that it rests. Less sure: something on the way may swallow the probes."""
    share = signals.way.probe_stuck_share if signals.way else None
    return Judgement(
        bottleneck=Bottleneck.STALLED,
        score=0.75,
        why="our probes reach a server and get no token, and the engine's counters stand still",
        evidence=lambda: gathered(
            fact("probe_stuck_share", share, "{value} of our last probes ended without a token", percent, 0.5)
        ),
        gate=True,
    )


def _one_of_several(stuck: float, thresholds: Thresholds) -> Judgement:
    if not stuck:
        return Judgement(bottleneck=Bottleneck.STALLED, score=0.0)
    text = f"{count(stuck)} with requests and without a token for {duration(thresholds.stall_seconds)}"
    return Judgement(
        bottleneck=Bottleneck.STALLED,
        score=1.0,
        why=f"{count(stuck)} of the engine's replicas hold requests and make no token",
        evidence=lambda: (Evidence(signal="replicas_stuck", text=text, value=stuck),),
        gate=True,
    )
