"""Does anyone ask for anything? Our own probes are nobody: an engine that serves nothing else is idle for certain."""

from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds


def nobody_asks(signals: Signals, thresholds: Thresholds) -> bool:
    """No request and no token for ``idle_seconds`` (or as long as is watched), but for those of our own probes."""
    load = signals.load
    if load.quiet_seconds is None:
        return False
    still = not load.busy and load.quiet_seconds >= min(thresholds.idle_seconds, load.span_seconds)
    return still or _only_our_probes(signals)


def _only_our_probes(signals: Signals) -> bool:
    """No more requests started than probes were sent, one more of each target may be in flight, and none waits."""
    load, in_flight = signals.load, signals.own_probe_targets or 0
    if signals.own_probes is None or load.requests_started_per_second is None or load.requests_waiting != 0:
        return False
    started = load.requests_started_per_second * load.span_seconds
    # A counter over a span is a product of floats: half a request of tolerance is none of a request.
    return started <= signals.own_probes + in_flight + 0.5 and (load.requests_running_last or 0) <= in_flight
