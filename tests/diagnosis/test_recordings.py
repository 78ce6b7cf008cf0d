"""Captures of a real vLLM, and recordings of a simulated node, judged as a whole."""

from itertools import pairwise
from pathlib import Path

import pytest

from pinchpoint.diagnosis import Bottleneck, RecordingVerdict, Thresholds, judge_recording
from pinchpoint.snapshot import Snapshot
from pinchpoint.sources.recording import read_recording

DATA = Path("tests/data")


def judge(folder: str, engine: str | None = None) -> RecordingVerdict:
    recording = read_recording(DATA / folder)
    return judge_recording(recording.snapshots, engine or recording.service, Thresholds())


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("vllm-real/a-fresh", Bottleneck.IDLE),
        ("vllm-real/b-idle-after", Bottleneck.IDLE),
        ("vllm-real/c-moderate", Bottleneck.HEALTHY),
        ("vllm-real/d-kv-saturated", Bottleneck.KV_CAPACITY),
        ("recordings/one-engine", Bottleneck.KV_CAPACITY),
    ],
)
def test_a_recording_gets_the_class_of_its_load(folder: str, expected: Bottleneck) -> None:
    verdict = judge(folder)

    assert verdict.diagnosis.bottleneck is expected
    # Nobody probed and no card is seen, so that a healthy engine is one is not known for certain.
    assert verdict.diagnosis.confidence_ratio > (0.6 if expected is Bottleneck.HEALTHY else 0.8)


def test_an_engine_that_nobody_probes_is_healthy_without_certainty() -> None:
    diagnosis = judge("vllm-real/c-moderate").diagnosis

    assert "own_probes" in diagnosis.missing
    assert diagnosis.confidence_ratio < 0.8


def test_a_saturated_pool_is_explained_by_usage_queue_and_preemption() -> None:
    diagnosis = judge("vllm-real/d-kv-saturated").diagnosis

    assert {evidence.signal for evidence in diagnosis.evidence} >= {
        "kv_cache_usage_ratio",
        "queue_held_by_kv_share",
        "preemptions_per_second",
        "ttft_judged_seconds",
    }
    assert diagnosis.advice[0].action == "fp8_kv_cache"


def test_a_timeline_covers_the_recording_without_gaps() -> None:
    timeline = judge("vllm-real/d-kv-saturated").timeline

    assert timeline[0].start == 0.0
    assert timeline[-1].end == 58.0
    assert all(before.end == after.start for before, after in pairwise(timeline))
    assert [interval.bottleneck for interval in timeline] == [Bottleneck.IDLE, Bottleneck.KV_CAPACITY]


@pytest.mark.parametrize(
    ("engine", "expected"),
    [("engine-0", Bottleneck.SCHEDULER), ("engine-1", Bottleneck.HEALTHY), (None, Bottleneck.IMBALANCE)],
)
def test_replicas_are_judged_apart_and_together(engine: str | None, expected: Bottleneck) -> None:
    assert judge("recordings/replica-folders", engine).diagnosis.bottleneck is expected


def test_a_service_is_out_of_balance_when_one_replica_queues_and_the_others_rest() -> None:
    """One replica runs its 256 and queues 400 more; the three others run 5 to 25 and nobody waits there."""
    diagnosis = judge("recordings/replica-folders").diagnosis

    assert diagnosis.confidence_ratio > 0.8
    assert diagnosis.runner_up is Bottleneck.SCHEDULER
    assert {evidence.signal for evidence in diagnosis.evidence} >= {"spread_share", "spread_demand_ratio"}
    assert diagnosis.signals["spread_demand_ratio"] < 0.5


def test_an_engine_that_never_answered_is_no_data() -> None:
    snapshots = [Snapshot(at=float(second)) for second in range(5)]

    assert judge_recording(snapshots, "chat", Thresholds()).diagnosis.bottleneck is Bottleneck.NO_DATA


def test_an_empty_recording_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one scrape"):
        judge_recording([], "chat", Thresholds())
