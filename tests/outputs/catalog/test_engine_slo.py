"""Promises kept are counted by the engine's own histograms, whatever their buckets are."""

from dataclasses import replace

import pytest

from pinchpoint.outputs.catalog import CATALOG
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import EngineReading, Histogram, ReplicaReading, SelfReport, Slo, Snapshot, Window

SLO = Slo(ttft_seconds=1.5, tpot_seconds=0.05)
TTFT = Histogram((1.0, 2.0, float("inf")), (4, 8, 10), 0.0, 10)
TOKENS = Histogram((0.025, 0.075, float("inf")), (100, 200, 200), 0.0, 200)
REQUESTS = Histogram((0.05, 0.1, float("inf")), (3, 5, 6), 0.0, 6)
REPLICA = ReplicaReading(replica="0", model="m", ttft_seconds=TTFT, inter_token_seconds=TOKENS)


def told(*replicas: ReplicaReading, slo: Slo = SLO) -> dict[str, dict[tuple[str, ...], float | None]]:
    """What each of the two rows says, by labels."""
    snapshot = Snapshot(at=0.0, engines=(EngineReading(engine="chat", at=0.0, replicas=replicas, slo=slo),))
    scene = Scene(
        snapshot=snapshot, window=Window(60.0), self_report=SelfReport(version="0.1.0", python_version="3.11")
    )
    rows = {metric.name: dict(metric.read(scene)) for metric in CATALOG}
    return {"all": rows["engine_slo_events_total"], "good": rows["engine_slo_good_events_total"]}


def test_an_objective_within_a_bucket_counts_its_part_and_what_is_in_the_open_bucket_is_late():
    counts = told(REPLICA)
    assert counts["all"][("chat", "0", "m", "ttft")] == 10
    assert counts["good"][("chat", "0", "m", "ttft")] == pytest.approx(6)


def test_an_objective_that_is_a_bucket_s_bound_counts_that_bucket():
    assert told(REPLICA, slo=replace(SLO, ttft_seconds=2.0))["good"][("chat", "0", "m", "ttft")] == 8


def test_time_per_token_is_judged_by_requests_where_the_engine_tells_them():
    key = ("chat", "0", "m", "tpot")
    by_token, by_request = told(REPLICA), told(replace(REPLICA, tpot_seconds=REQUESTS))
    assert (by_token["all"][key], by_token["good"][key]) == (200, pytest.approx(150))
    assert (by_request["all"][key], by_request["good"][key]) == (6, 3)


def test_each_replica_has_its_own():
    counts = told(REPLICA, replace(REPLICA, replica="1", model=None))
    assert {labels[1:3] for labels in counts["all"]} == {("0", "m"), ("1", "")}


def test_without_a_histogram_there_is_no_number():
    counts = told(ReplicaReading(replica="0"))
    assert set(counts["all"].values()) == set(counts["good"].values()) == {None}
