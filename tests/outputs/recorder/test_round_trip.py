"""What was recorded at the engines' pace is judged as it was judged live."""

import pytest

from pinchpoint.diagnosis import Thresholds, judge_recording
from pinchpoint.outputs.recorder import Recorder
from pinchpoint.simulator.node.machine import SimulatedMachine
from pinchpoint.simulator.serving.exposition import render
from pinchpoint.snapshot import EngineReading, EngineTarget, Snapshot, Window
from pinchpoint.sources.engine import reading_from_body
from pinchpoint.sources.recording import read_recording

WARMUP_SECONDS = 30
INTERVAL_SECONDS = 5.0
OFFSETS = (0.7, 3.2, 4.1, 1.4)  # of each engine's scrapes against the ticks


def live(scenario: str, seconds: int) -> list[Snapshot]:
    """The ticks of a daemon at its default pace: one a second, engines scraped every five."""
    machine = SimulatedMachine(0, scenario)
    offsets = dict(zip(machine.services, OFFSETS, strict=True))
    held: dict[str, EngineReading] = {}
    ticks = []
    for second in range(seconds):
        for name, service in machine.services.items():
            due = offsets[name] + (second - offsets[name]) // INTERVAL_SECONDS * INTERVAL_SECONDS
            if name in held and held[name].at == due:
                continue
            machine.advance_to(WARMUP_SECONDS + max(due, machine.now - WARMUP_SECONDS))
            target = EngineTarget(engine=name, url="", facts=service.facts(), gpus=tuple(service.cards))
            held[name] = reading_from_body(target, render(service.engines, 1.8e9).encode(), None, due)
        machine.advance_to(WARMUP_SECONDS + second)
        gpus = machine.gpu_readings(second)
        engines = tuple(held.values())
        ticks.append(Snapshot(at=second, gpus=gpus, engines=engines, host=machine.host, links=machine.links))
    return ticks


@pytest.mark.parametrize(
    ("scenario", "classes"),
    [("healthy", ("healthy",) * 4), ("memory_wall", ("kv_capacity", "healthy", "healthy", "healthy"))],
)
def test_a_replay_gives_the_verdicts_of_the_live_daemon(tmp_path, scenario, classes):
    ticks = live(scenario, 90)
    recorder = Recorder(tmp_path / "r", INTERVAL_SECONDS)
    for tick in ticks:
        recorder.write(tick)
    recording = read_recording(tmp_path / "r")
    for engine, expected in zip(recording.engines, classes, strict=True):
        seen = judge_recording(ticks, engine, Thresholds())
        again = judge_recording(recording.snapshots, engine, Thresholds())
        assert (seen.diagnosis.bottleneck, again.diagnosis.bottleneck) == (expected, expected)
        assert {interval.bottleneck for interval in again.timeline} == {expected}
        was = [r.at - ticks[0].at for r in Window(1e9, tuple(ticks)).engine(engine)]
        read = [r.at for r in Window(1e9, recording.snapshots).engine(engine)]
        assert read == pytest.approx(was[: len(read)]), "the same scrapes, none lost, none doubled"
        assert len(was) - len(read) <= 1, "the last one may wait for its step"
