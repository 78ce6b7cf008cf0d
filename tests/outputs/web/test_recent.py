"""Rates, quantiles and sparkline points from a window."""

from dataclasses import replace

import pytest

from pinchpoint.diagnosis.rates import rate
from pinchpoint.outputs.web import recent
from pinchpoint.snapshot import Absence, Reason, Snapshot, Window
from tests.outputs.web.scenes import engine


def tokens(replica: recent.ReplicaReading) -> float | None:
    return replica.generation_tokens_total


def test_a_rate_is_the_increase_over_the_last_minute_and_over_all_replicas() -> None:
    readings = [engine("chat", float(at), tokens_per_second=50, replicas=2) for at in range(0, 200, 5)]
    minute = recent.last_minute(readings)
    assert [at for at, _ in minute["0"]] == list(range(135, 200, 5))
    assert rate(minute, tokens) == pytest.approx(100)


def test_no_rate_spans_a_restart() -> None:
    before = [replace(engine("chat", float(at)), epoch="1") for at in (10, 20, 30)]
    after = [replace(engine("chat", float(at), tokens_per_second=7), epoch="2") for at in (40, 50)]
    assert rate(recent.last_minute([*before, *after[:1]]), tokens) is None
    assert rate(recent.last_minute([*before, *after]), tokens) == pytest.approx(7)


def test_a_replica_that_appears_is_no_increase() -> None:
    readings = [engine("chat", 10.0, tokens_per_second=50), engine("chat", 20.0, tokens_per_second=50, replicas=2)]
    assert rate(recent.last_minute(readings), tokens) == pytest.approx(50)


def test_latencies_are_of_what_was_observed_lately_and_unknown_without_traffic() -> None:
    first, last = engine("chat", 10.0, ttft=0.3), engine("chat", 20.0, ttft=0.3)
    latency = recent.latency(recent.last_minute([first, last]), lambda r: r.ttft_seconds, slo_seconds=0.1)
    assert latency.p95_seconds is not None
    assert latency.over_slo
    still = recent.last_minute([first, replace(first, at=20.0)])
    quiet = recent.latency(still, lambda r: r.ttft_seconds, slo_seconds=0.1)
    assert (quiet.p50_seconds, quiet.p95_seconds, quiet.over_slo) == (None, None, False)


def test_history_keeps_the_peak_of_each_step_and_leaves_a_gap_where_the_engine_was_absent() -> None:
    gone = (Absence(source="engine/chat", reason=Reason.TIMEOUT, detail="", at=11.0),)
    ticks = [
        Snapshot(at=float(at), absences=gone)
        if 11 <= at <= 20
        else Snapshot(at=float(at), engines=(engine("chat", float(at), kv=0.9 if at == 7 else 0.1),))
        for at in range(1, 26)
    ]
    values = recent.history(Window(600, tuple(ticks)), "chat").kv_cache_usage_ratio
    assert len(values) == 60
    assert values[-5:] == (0.1, 0.9, None, None, 0.1)
    assert set(values[:-5]) == {None}
