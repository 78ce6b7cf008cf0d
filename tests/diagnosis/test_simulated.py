"""The simulator plays a story that the diagnosis knows nothing of, and is found out; with less to see, honestly."""

from dataclasses import replace
from pathlib import Path

import pytest

from pinchpoint.diagnosis import Bottleneck, Diagnosis, Thresholds, judge_recording
from pinchpoint.simulator import world_of, write_recording
from pinchpoint.simulator.world import Probes
from pinchpoint.sources.recording import read_recording


def played(folder: Path, scenario: str, *hidden: str) -> Diagnosis:
    world = replace(world_of(scenario, seed=3), probes=Probes(every_seconds=10.0))
    write_recording(folder, world, seconds=90.0)
    for name in hidden:
        (folder / name).unlink()
    recording = read_recording(folder)
    return judge_recording(recording.snapshots, recording.service, Thresholds()).diagnosis


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("healthy", Bottleneck.HEALTHY),
        ("memory_wall", Bottleneck.KV_CAPACITY),
        ("slots_exhausted", Bottleneck.SCHEDULER),
        ("prefill_storm", Bottleneck.COMPUTE),
        ("bandwidth_bound", Bottleneck.MEMORY_BANDWIDTH),
        ("pcie_tp", Bottleneck.INTERCONNECT),
        ("throttled_gpu", Bottleneck.HARDWARE),
        ("host_starved", Bottleneck.HOST_CPU),
        ("buffering_gateway", Bottleneck.NETWORK),
        ("uneven_replicas", Bottleneck.IMBALANCE),
        ("neighbour_leak", Bottleneck.MEMORY_GROWTH),
        ("stalled", Bottleneck.STALLED),
        ("asleep", Bottleneck.SLEEPING),
        ("idle", Bottleneck.IDLE),
    ],
)
def test_a_played_story_is_found_out(tmp_path: Path, scenario: str, expected: Bottleneck) -> None:
    assert played(tmp_path, scenario).bottleneck is expected


@pytest.mark.parametrize(
    ("scenario", "expected"), [("slots_exhausted", Bottleneck.SCHEDULER), ("prefill_storm", Bottleneck.COMPUTE)]
)
def test_without_gpu_readings_and_facts_the_answer_is_the_same_but_less_sure(
    tmp_path: Path, scenario: str, expected: Bottleneck
) -> None:
    everything = played(tmp_path / "all", scenario)
    little = played(tmp_path / "little", scenario, "gpu.jsonl", "meta.json")

    assert little.bottleneck is expected
    assert little.confidence_ratio < everything.confidence_ratio
    assert little.missing


def test_a_throttle_that_nobody_can_see_is_unknown_and_the_gap_is_named(tmp_path: Path) -> None:
    diagnosis = played(tmp_path, "throttled_gpu", "gpu.jsonl")

    assert diagnosis.bottleneck is Bottleneck.UNKNOWN
    assert "gpu_readings" in diagnosis.missing
