import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pinchpoint.outputs.recorder import Recorder
from pinchpoint.outputs.recorder.recorder import folder_name
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    GpuReading,
    GpuState,
    Histogram,
    NvLink,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    ReplicaReading,
    Slo,
    Snapshot,
    Window,
)
from pinchpoint.sources.recording import read_recording
from tests.outputs.exposition.scenes import engine, full_scene

INF = float("inf")


def snapshots(count: int, step: float = 1.0, **given) -> list[Snapshot]:
    """Ticks of a node with a full GPU, a lost one and an engine that is scraped at each; the first at 1000."""
    base = replace(full_scene(gpus=1).snapshot, absences=())
    every = [replace(base, at=1000 + n * step, **given) for n in range(count)]
    return [replace(s, engines=tuple(replace(reading, at=s.at) for reading in s.engines)) for s in every]


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
    assert back.engine("chat").frontend == was.engine("chat").frontend
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


def test_nvlinks_are_written_as_objects_by_link(tmp_path):
    links = (NvLink(link="0", up=True, version=4.0, errors_total={"crc": 0.0}), NvLink(link="1", up=False))
    record(tmp_path / "r", snapshots(1, gpus=(GpuReading(gpu="0", uuid="GPU-0", at=0.0, nvlinks=links),)))
    (written,) = json.loads((tmp_path / "r" / "gpu.jsonl").read_text())["gpus"]
    del written["gpu"], written["uuid"]
    assert written == {
        "nvlink_up": {"0": 1, "1": 0},
        "nvlink_version": {"0": 4.0},
        "nvlink_errors_total": {"0": {"crc": 0.0}},
    }
    assert read_recording(tmp_path / "r").snapshots[0].gpus[0].nvlinks == links


def test_how_gpus_are_connected_is_known_later_and_recorded_then(tmp_path):
    first, second, third = snapshots(3)
    record(tmp_path / "r", [replace(first, links=()), second, replace(third, links=())])
    assert read_recording(tmp_path / "r").snapshots[0].links == second.links != ()


def test_what_an_engines_process_says_is_known_later_and_recorded_then(tmp_path):
    every = snapshots(3)
    before, after = every[0].engines[0], every[2].engines[0]
    unknown = replace(before, facts=replace(before.facts, max_num_seqs=None, origins={}), gpus=())
    known = replace(after, facts=replace(after.facts, max_num_seqs=24), gpus=("0",))
    gone = replace(after, at=every[2].at + 1, gpus=())
    record(
        tmp_path / "r",
        [
            replace(every[0], engines=(unknown,)),
            replace(every[2], engines=(known,)),
            replace(every[2], at=every[2].at + 1, engines=(gone,)),
        ],
    )
    recording = read_recording(tmp_path / "r")
    assert recording.facts.max_num_seqs == 24
    assert recording.facts.origins == after.facts.origins
    assert recording.snapshots[0].engine("chat").gpus == ("0",)


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


def test_a_scrape_that_holds_for_many_ticks_is_recorded_once_at_its_own_time(tmp_path):
    scrapes = [replace(engine("chat"), at=1000 + 5.0 * n + 0.3) for n in range(5)]
    ticks = [replace(s, engines=(scrapes[int(s.at - 1000.5) // 5],)) for s in snapshots(22)[1:]]
    record(tmp_path / "r", ticks, step_seconds=5.0)
    readings = [s.engine("chat") for s in read_recording(tmp_path / "r").snapshots]
    assert [r.at for r in readings if r] == pytest.approx([-0.7, 4.3, 9.3, 14.3, 19.3])


def test_scrapes_that_drift_against_the_steps_are_neither_lost_nor_doubled(tmp_path):
    late = [0.0, 4.9, 10.1, 14.9, 20.1, 24.9, 30.1, 34.9]  # a scrape now before, now after its step

    def newest(at: float) -> EngineReading:
        return replace(engine("chat"), at=1000 + max(t for t in late if t <= at - 1000))

    record(tmp_path / "r", [replace(s, engines=(newest(s.at),)) for s in snapshots(46)], step_seconds=5.0)
    found = Window(1000, read_recording(tmp_path / "r").snapshots).engine("chat")
    assert [r.at for r in found] == pytest.approx(late)


def test_an_engine_that_never_answered_is_recorded_with_its_reason(tmp_path):
    refused = Absence("engine/chat", Reason.CONNECT_REFUSED, "engine chat at http://h:1: refused", 999.0)
    record(tmp_path / "r", snapshots(3, engines=(), absences=(refused,)))
    recording = read_recording(tmp_path / "r")
    assert (recording.engines, recording.service) == (("chat",), "chat")
    assert [s.absence("engine/chat") for s in recording.snapshots] == [replace(refused, at=-1.0)] * 3


def test_an_outage_keeps_its_length_and_its_place(tmp_path):
    gone = (Absence("engine/chat", Reason.TIMEOUT, "no answer", 1002.0),)
    well, ill = snapshots(6), snapshots(6, engines=(), absences=gone)
    record(tmp_path / "r", [*well[:2], *ill[2:4], *well[4:]])
    readings = [s.engine("chat") for s in read_recording(tmp_path / "r").snapshots]
    assert [reading and reading.at for reading in readings] == [0, 1, None, None, 4, 5]


def test_a_recording_begins_when_every_engine_has_been_asked(tmp_path):
    starting = Absence("engine/chat", Reason.STARTING, "not scraped yet", 1000.0)
    record(tmp_path / "r", [*snapshots(2, engines=(), absences=(starting,)), *snapshots(4)[2:]])
    assert [s.engine("chat").at for s in read_recording(tmp_path / "r").snapshots] == [0, 1]


def test_several_engines_are_services_each_with_its_own_facts_and_objectives(tmp_path):
    edge = replace(engine("edge"), facts=EngineFacts(max_num_seqs=8), slo=Slo(ttft_seconds=0.5), gpus=("1",))
    record(tmp_path / "r", snapshots(3, engines=(engine("chat"), edge)))
    recording = read_recording(tmp_path / "r")
    assert (recording.engines, recording.service) == (("chat", "edge"), None)
    last = recording.snapshots[-1]
    assert [reading.engine for reading in last.engines] == ["chat", "edge"]
    assert [reading.facts.max_num_seqs for reading in last.engines] == [64, 8]
    assert last.engine("edge").slo == Slo(ttft_seconds=0.5)
    assert last.engine("edge").gpus == ("1",)


def test_a_probe_names_the_engine_as_the_recording_does(tmp_path):
    probe = ProbeReading(target="p", placement=Placement.LOCAL, at=1.0, outcome=ProbeOutcome.OK, engine="a/b")
    record(tmp_path / "r", snapshots(1, engines=(engine("a/b"),), probes=(probe,)))
    recording = read_recording(tmp_path / "r")
    assert [p.engine for p in recording.snapshots[0].probes] == list(recording.engines)


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
    with pytest.raises(FileExistsError, match="is not empty"):
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


def test_an_engine_that_bears_the_name_of_a_file_of_the_recording_gets_another_folder(tmp_path):
    names = ("meta.json", "gpu.jsonl", "probe.jsonl", "host.jsonl")
    with capture_logs() as logs:
        record(tmp_path / "r", snapshots(2, engines=tuple(map(engine, names))))
    assert logs == []
    assert read_recording(tmp_path / "r").engines == tuple(sorted(f"{name}-2" for name in names))


def test_a_disk_that_fills_in_the_middle_of_a_line_leaves_whole_lines(tmp_path):
    full = tmp_path / "full.py"
    full.write_text(
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from pinchpoint.outputs.recorder import Recorder\n"
        "from tests.outputs.recorder.test_recorder import snapshots\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "recorder = Recorder(Path(sys.argv[1]), 1.0)\n"
        "for number, snapshot in enumerate(snapshots(6)):\n"
        "    recorder.write(snapshot)\n"
        "    if number == 1:\n"
        "        size = (Path(sys.argv[1]) / 'gpu.jsonl').stat().st_size\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))\n"
    )
    subprocess.run([sys.executable, str(full), str(tmp_path / "r")], check=True, env={**os.environ, "PYTHONPATH": "."})
    lines = (tmp_path / "r" / "gpu.jsonl").read_text().splitlines()
    assert [json.loads(line)["t"] for line in lines] == [0, 1]
    assert read_recording(tmp_path / "r").snapshots[0].gpus
