"""Half an hour of simulated trouble and a quiet end: pinchpoint itself and Prometheus raise the same alerts.

At the very same evaluations, with the same labels, for nothing but the engine that evaluates differs.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.state import State
from pinchpoint.config import Settings
from pinchpoint.daemon.deciding import Decider
from pinchpoint.daemon.evaluating import Evaluator
from pinchpoint.outputs.exposition import samples_of
from pinchpoint.outputs.scene import Scene
from pinchpoint.simulator import write_recording
from pinchpoint.simulator.scenarios import world_of
from pinchpoint.simulator.world import LostCard, World
from pinchpoint.snapshot import SelfReport, Snapshot
from pinchpoint.sources.recording import read_recording
from tests.alerting.rules_over_scenes import Batch, Firing, batch_of, disagreement

STEP, INTERVAL = 5, 15
TARGET = {"job": "pinchpoint", "instance": "node"}
BEFORE, TROUBLE, AFTER = 180, 1200, 720  # seconds

MEMORY_WALL, HEALTHY = world_of("memory_wall", 7), world_of("healthy", 8)
LOST = replace(HEALTHY, faults=(LostCard(gpu="1", at=60.0),))

# What must have fired, so that agreement is no agreement on nothing.
STORIES: dict[str, tuple[World, str]] = {
    "memory_wall": (MEMORY_WALL, "PinchpointKVCacheHigh"),
    "lost_card": (LOST, "PinchpointGPULost"),
    "throttled_gpu": (world_of("throttled_gpu", 9), "PinchpointGPU(Hardware|Thermal)Slowdown"),
}


def snapshots(folder: Path, *parts: tuple[World, int]) -> Iterator[Snapshot]:
    """One world after the other, each with counters of its own, as if the engine had been started anew."""
    begins = 0.0
    for number, (world, seconds) in enumerate(parts):
        place = folder / f"part-{number}"
        write_recording(place, world, seconds - STEP, STEP)
        for snapshot in read_recording(place).snapshots:
            yield _later(snapshot, begins)
        begins += seconds


def _later(snapshot: Snapshot, seconds: float) -> Snapshot:
    def moved(reading):  # type: ignore[no-untyped-def]
        return replace(reading, at=reading.at + seconds)

    return replace(
        moved(snapshot),
        engines=tuple(map(moved, snapshot.engines)),
        gpus=tuple(map(moved, snapshot.gpus)),
        probes=tuple(map(moved, snapshot.probes)),
        host=moved(snapshot.host) if snapshot.host else None,
    )


def scenes(every: Iterator[Snapshot]) -> Iterator[Scene]:
    decider = Decider(Settings())
    for snapshot in every:
        up = sum(gpu.up for gpu in snapshot.gpus)
        report = SelfReport(version="1", python_version="3", gpus_expected=len(snapshot.gpus), gpus_visible=up)
        yield decider.decide(snapshot, report, 0.0)


@pytest.mark.parametrize("story", STORIES)
def test_both_raise_the_same_alerts_at_the_same_evaluations(tmp_path: Path, story: str) -> None:
    world, wanted = STORIES[story]
    evaluator = Evaluator(ALERTS, TARGET)
    batches: list[Batch] = []
    firing: list[Firing] = []
    parts = snapshots(tmp_path, (HEALTHY, BEFORE), (world, TROUBLE), (HEALTHY, AFTER))
    for number, scene in enumerate(scenes(parts)):
        if number % (INTERVAL // STEP):
            continue
        batches.append(batch_of(list(samples_of(scene, evaluator.names)), TARGET))
        states = evaluator.evaluate(scene, scene.snapshot.at, INTERVAL).states
        now: dict[str, list[dict[str, str]]] = {}
        for name, labels, each in states.each():
            if each.state is State.FIRING:
                now.setdefault(name, []).append({**dict(labels), "severity": evaluator.alerts[name].severity.value})
        firing.append(now)
    fired = {name for each in firing for name in each}
    assert any(re.fullmatch(wanted, name) for name in fired), fired
    assert firing[-1].keys() < fired, "and ends"
    left_out = {alert.name for alert in ALERTS} - evaluator.alerts.keys()
    assert disagreement(tmp_path, INTERVAL, batches, firing, left_out) == ""
