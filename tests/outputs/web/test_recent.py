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


def test_history_keeps_the_peak_of_each_step_and_leaves_a_gap_where_the_engine_was_absent() -> None:
    gone = (Absence(source="engine/chat", reason=Reason.TIMEOUT, detail="", at=11.0),)
    ticks = [
        Snapshot(at=float(at), absences=gone)
        if 11 <= at <= 20
        else Snapshot(at=float(at), engines=(engine("chat", float(at), kv=0.9 if at == 7 else 0.1),))
        for at in range(1, 26)
    ]
    history = recent.history(Window(600, tuple(ticks)), "chat")
    values = history.kv_cache_usage_ratio
    assert (len(values), history.span_seconds) == (12, 60.0)
    assert values[-5:] == (0.1, 0.9, None, None, 0.1)
    assert set(values[:-5]) == {None}


@pytest.mark.parametrize(("watched", "span"), [(3, 60), (60, 60), (61, 90), (100, 120), (299, 300), (450, 300)])
def test_a_history_is_as_long_as_the_engine_was_watched_within_one_to_five_minutes(watched: int, span: int) -> None:
    ticks = [Snapshot(at=float(at)) for at in range(10)]
    ticks += [Snapshot(at=float(at), engines=(engine("chat", float(at)),)) for at in range(10, 11 + watched)]
    history = recent.history(Window(600, tuple(ticks)), "chat")
    assert history.span_seconds == span
    assert len(history.requests_running) == span / history.step_seconds
