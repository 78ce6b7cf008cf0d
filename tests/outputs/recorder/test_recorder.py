import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pinchpoint.outputs.recorder import Recorder
from pinchpoint.outputs.recorder.recorder import folder_name
from pinchpoint.snapshot import GpuState, Histogram, ReplicaReading, Snapshot
from pinchpoint.sources.recording import read_recording
from tests.outputs.exposition.scenes import engine, full_scene

INF = float("inf")


def snapshots(count: int, step: float = 1.0, **given) -> list[Snapshot]:
    """Ticks of a node with a full GPU and a lost one; the first at 1000."""
    base = full_scene(gpus=1).snapshot
    return [replace(base, at=1000 + n * step, **given) for n in range(count)]


def record(folder, every, step_seconds=1.0, **limits) -> Recorder:
    recorder = Recorder(folder, step_seconds, **limits)
    for snapshot in every:
        recorder.write(snapshot)
    return recorder


def test_what_is_recorded_is_read_back_as_it_was(tmp_path):
    (first, *_), _ = snapshots(3), record(tmp_path / "r", snapshots(3))
    recording = read_recording(tmp_path / "r")
    assert [s.at for s in recording.snapshots] == [0, 1, 2]
    assert recording.engines == ("chat",)
    assert recording.facts.max_num_seqs == 64
    back, was = recording.snapshots[1], first
    assert back.engine("chat").replicas == was.engine("chat").replicas
    assert back.engine("chat").gpus == ("0",)
    assert [replace(g, at=0) for g in back.gpus] == [replace(g, at=0, last_success_at=None) for g in was.gpus]
    assert replace(back.host, at=0) == replace(was.host, at=0)
    assert {p.target: (p.placement, p.ttft_seconds) for p in back.probes} == {
        p.target: (p.placement, p.ttft_seconds) for p in was.probes
    }
    assert back.links == was.links


def test_what_is_unknown_stays_unknown(tmp_path):
    bare = replace(engine("chat"), replicas=(ReplicaReading(requests_running=3.0),))
    record(tmp_path / "r", snapshots(1, engines=(bare,), gpus=(), host=None, probes=()))
    (back,) = read_recording(tmp_path / "r").snapshots
    assert back.engine("chat").replicas == bare.replicas
    assert (back.gpus, back.host, back.probes) == ((), None, ())


def test_a_lost_gpu_is_recorded_as_lost(tmp_path):
    record(tmp_path / "r", snapshots(1))
    (back,) = read_recording(tmp_path / "r").snapshots
    assert [(g.up, g.state) for g in back.gpus] == [(True, GpuState.OK), (False, GpuState.LOST)]


def test_one_snapshot_per_step_however_often_it_ticks(tmp_path):
    record(tmp_path / "r", snapshots(21, step=1.0), step_seconds=5.0)
    recording = read_recording(tmp_path / "r")
    assert [s.at for s in recording.snapshots] == [0, 5, 10, 15, 20]
    assert len((tmp_path / "r" / "gpu.jsonl").read_text().splitlines()) == 5


def test_a_probe_is_written_once_though_every_tick_shows_it(tmp_path):
    record(tmp_path / "r", snapshots(4))
    assert len((tmp_path / "r" / "probe.jsonl").read_text().splitlines()) == 2


def test_two_engines_of_which_one_comes_later(tmp_path):
    one, two = snapshots(1), snapshots(2, engines=(engine("chat"), engine("edge")))[1:]
    record(tmp_path / "r", one + two)
    recording = read_recording(tmp_path / "r")
    assert set(recording.engines) == {"chat", "edge"}
    assert recording.snapshots[0].engine("edge") is None
    assert recording.snapshots[1].engine("edge") is not None


def test_a_full_recording_ends_with_one_line_in_the_log(tmp_path):
    with capture_logs() as logs:
        record(tmp_path / "r", snapshots(20), max_bytes=20_000)
    written = sum(file.stat().st_size for file in (tmp_path / "r").rglob("*") if file.is_file())
    assert 20_000 <= written < 40_000
    assert [entry["event"] for entry in logs] == ["Recording ended: it is as large as it may be"]


def test_a_disk_that_fails_is_one_line_and_one_when_it_works_again(tmp_path):
    every = snapshots(4)
    recorder = record(tmp_path / "r", every[:1])
    (tmp_path / "r" / "gpu.jsonl").unlink()
    (tmp_path / "r" / "gpu.jsonl").mkdir()
    with capture_logs() as logs:
        recorder.write(every[1])
        recorder.write(every[2])
        (tmp_path / "r" / "gpu.jsonl").rmdir()
        recorder.write(every[3])
    assert [entry["event"] for entry in logs] == ["Recording fails", "Recording works again"]


def test_a_folder_with_something_in_it_is_refused(tmp_path):
    (tmp_path / "old.prom").write_text("")
    with pytest.raises(FileExistsError, match="is not empty; name a new folder"):
        Recorder(tmp_path, 1.0)


def test_a_hostile_engine_name_stays_in_its_folder(tmp_path):
    record(tmp_path / "r", snapshots(1, engines=(engine("../../etc/x\n"),)))
    assert {p.name for p in tmp_path.iterdir()} == {"r"}
    assert json.loads((tmp_path / "r" / "meta.json").read_text())["engines"][0]["name"] == "_.._etc_x_"
    assert read_recording(tmp_path / "r").engines == ("_.._etc_x_",)


def test_engines_whose_names_look_alike_as_folders_stay_apart(tmp_path):
    record(tmp_path / "r", snapshots(2, engines=(engine("a/b"), engine("a_b"))))
    assert read_recording(tmp_path / "r").engines == ("a_b", "a_b-2")


@given(st.text(max_size=300))
def test_any_name_is_a_plain_folder(name):
    made = folder_name(name)
    assert made
    assert "/" not in made
    assert not made.startswith(".")
    assert len(made) <= 100


def test_bounds_and_negative_sums_of_a_histogram_survive(tmp_path):
    histogram = Histogram((0.001, 1.0, INF), (1.0, 2.0, 2.0), -0.25, 2.0)
    bare = replace(engine("chat"), replicas=(ReplicaReading(queue_seconds=histogram, model="a"),))
    record(tmp_path / "r", snapshots(1, engines=(bare,)))
    (back,) = read_recording(tmp_path / "r").snapshots
    assert back.engine("chat").replicas == bare.replicas
