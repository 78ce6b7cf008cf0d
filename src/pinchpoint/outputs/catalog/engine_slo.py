"""The engine family: what the service promised, and how much of what it did was in time.

Two counters make a burn rate a plain division. An alert that takes the objective's bucket from a histogram instead must
hard-code the objective, and an engine has no bucket at most objectives.
"""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.engine_replica import REPLICA, engines
from pinchpoint.outputs.catalog.metric import Each, Sample, counter, gauge
from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading


def _thresholds(e: EngineReading) -> Iterable[Sample]:
    yield (e.engine, "ttft"), e.slo.ttft_seconds
    yield (e.engine, "tpot"), e.slo.tpot_seconds


def _observed(r: ReplicaReading) -> tuple[tuple[str, Histogram | None], ...]:
    """Of an engine that does not tell the mean of each request, its time between tokens is what there is."""
    return ("ttft", r.ttft_seconds), ("tpot", r.inter_token_seconds if r.tpot_seconds is None else r.tpot_seconds)


def _events(e: EngineReading) -> Iterable[Sample]:
    for r in e.replicas:
        for signal, histogram in _observed(r):
            count = histogram.count_within(float("inf")) if histogram else None
            yield (e.engine, r.replica, r.model or "", signal), count


def _good_events(e: EngineReading) -> Iterable[Sample]:
    objectives = {"ttft": e.slo.ttft_seconds, "tpot": e.slo.tpot_seconds}
    for r in e.replicas:
        for signal, histogram in _observed(r):
            count = histogram.count_within(objectives[signal]) if histogram else None
            yield (e.engine, r.replica, r.model or "", signal), count


ENGINE_SLO_METRICS = (
    gauge(
        "slo_threshold_seconds",
        ("engine", "signal"),
        Each(engines, _thresholds),
        "What the service promised: the latest acceptable ttft, and time per output token (tpot).",
    ),
    counter(
        "engine_slo_events_total",
        (*REPLICA, "signal"),
        Each(engines, _events),
        "What the engine timed: first tokens (ttft), and requests by their mean time per output token (tpot), of an "
        "engine that does not tell it the tokens one by one.",
    ),
    counter(
        "engine_slo_good_events_total",
        (*REPLICA, "signal"),
        Each(engines, _good_events),
        "Those of engine_slo_events_total within slo_threshold_seconds, interpolated within the engine's own bucket.",
    ),
)
