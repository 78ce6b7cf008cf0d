"""Recordings on disk become the snapshots that a daemon would have made."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import (
    EngineReading,
    GpuReading,
    GpuState,
    NvLink,
    PeerLink,
    Placement,
    ProbeOutcome,
    Reason,
    Slo,
    Window,
)
from pinchpoint.sources.recording import Recording, RecordingError, read_recording
from pinchpoint.sources.recording.lines import Series

DATA = Path("tests/data")
SCRAPE = 'vllm:num_requests_running{engine="0"} 1\nvllm:generation_tokens_total{engine="0"} 5\n'


def write(folder: Path, scrapes: int = 3, **files: object) -> Path:
    """A recording; a list is written as JSON Lines, a dict as JSON, text as it is. ``gpu_jsonl`` is gpu.jsonl."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(scrapes):
        (folder / f"{number:03}.prom").write_text(SCRAPE)
    for name, content in files.items():
        path = folder / name.replace("_", ".")
        match content:
            case list():
                path.write_text("".join(json.dumps(line) + "\n" for line in content))
            case dict():
                path.write_text(json.dumps(content))
            case _:
                path.write_text(str(content))
    return folder


def mistake(folder: Path, step: float | None = None) -> str:
    with pytest.raises(RecordingError) as caught:
        read_recording(folder, step)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def service_readings(recording: Recording) -> list[EngineReading | None]:
    return [snapshot.engine(recording.service) for snapshot in recording.snapshots]


@pytest.mark.parametrize(
    ("state", "scrapes"), [("a-fresh", 5), ("b-idle-after", 7), ("c-moderate", 29), ("d-kv-saturated", 59)]
)
def test_a_real_recording_is_read_scrape_by_scrape(state: str, scrapes: int):
    recording = read_recording(DATA / "vllm-real" / state)
    assert recording.engines == (state,)
    assert recording.service == state
    assert [snapshot.at for snapshot in recording.snapshots] == list(range(scrapes))
    assert all(reading is not None for reading in service_readings(recording))
    assert recording.facts.version == "0.32.0"
    assert recording.facts.max_num_seqs == (64 if state.startswith("d") else 16)
    assert recording.simulated is False
    assert recording.snapshots[0].gpus == ()
    assert recording.snapshots[0].host is None


def test_one_engine_with_two_replicas_and_everything_beside_it():
    recording = read_recording(DATA / "recordings/one-engine")
    assert (recording.step_seconds, recording.simulated) == (5, True)
    assert recording.slo == Slo(ttft_seconds=1.0, tpot_seconds=0.03)
    last = recording.snapshots[-1]
    assert last.at == 55
    reading = last.engine("one-engine")
    assert reading is not None
    assert [replica.replica for replica in reading.replicas] == ["0", "1"]
    assert reading.gpus == ("0", "1")
    assert reading.slo == recording.slo
    assert [(gpu.gpu, gpu.at, gpu.name) for gpu in last.gpus] == [(i, 55.0, "NVIDIA H100 80GB HBM3") for i in "01"]
    assert last.gpus[0].throttle_active["sw_power_cap"] == 0
    assert last.host is not None
    assert last.host.cpu_count == 16
    hosted = next(probe for probe in last.probes if probe.target == "hosted")
    assert (hosted.at, hosted.placement, hosted.outcome) == (11.71, Placement.HOSTED, ProbeOutcome.OK)
    assert recording.snapshots[0].probes == ()


def test_replicas_in_folders_are_engines_and_one_service():
    recording = read_recording(DATA / "recordings/replica-folders")
    assert recording.engines == ("engine-0", "engine-1", "engine-2", "engine-3")
    assert recording.service == "replica-folders"
    last = recording.snapshots[-1]
    one, service = last.engine("engine-1"), last.engine("replica-folders")
    assert one is not None
    assert service is not None
    assert one.gpus == ("2", "3")
    assert one.facts.data_parallel_size is None
    assert service.gpus == tuple("01234567")
    assert service.facts.data_parallel_size == 4
    assert [replica.replica for replica in service.replicas] == [f"engine-{i}/0" for i in range(4)]
    assert service.replicas[1].generation_tokens_total == one.replicas[0].generation_tokens_total
    assert [gpu.gpu for gpu in last.gpus] == list("01234567")
    assert PeerLink("0", "1", "NV18") in last.links


def test_a_local_probe_that_names_no_engine_went_to_the_service():
    last = read_recording(DATA / "recordings/replica-folders").snapshots[-1]
    assert {probe.target: probe.engine for probe in last.probes} == {"gateway": "replica-folders", "hosted": None}
    assert last.probes_of("replica-folders")


def test_the_snapshots_fit_a_window():
    window = Window(600)
    for snapshot in read_recording(DATA / "recordings/replica-folders").snapshots:
        window = window.append(snapshot)
    assert len(window.engine("replica-folders")) == 12
    assert {reading.epoch for reading in window.engine("engine-0")} == {"1796056400.00#0"}


@pytest.mark.parametrize(("given", "in_meta", "step"), [(None, None, 1), (None, 5, 5), (2.5, 5, 2.5)])
def test_the_step_is_the_argument_then_meta_then_a_second(tmp_path: Path, given, in_meta, step):
    folder = write(tmp_path / "r", meta_json={"step_seconds": in_meta})
    assert [snapshot.at for snapshot in read_recording(folder, given).snapshots] == [0, step, 2 * step]


def test_bare_scrapes_are_a_recording(tmp_path: Path):
    recording = read_recording(write(tmp_path / "mine"))
    assert recording.service == "mine"
    assert recording.slo == Slo()
    assert len(recording.snapshots) == 3


def test_a_scrape_that_makes_no_sense_is_an_absence_of_its_step(tmp_path: Path):
    folder = write(tmp_path / "r")
    (folder / "001.prom").write_text("<html>\n")
    recording = read_recording(folder)
    assert [reading is None for reading in service_readings(recording)] == [False, True, False]
    absence = recording.snapshots[1].absence("engine/r")
    assert absence is not None
    assert (absence.reason, absence.at) == (Reason.NOT_EXPOSITION, 1)
    assert absence.detail.startswith("001.prom: ")
    assert recording.snapshots[1].engine_names() == ("r",)


def test_a_restart_within_a_recording_begins_an_epoch(tmp_path: Path):
    folder = write(tmp_path / "r")
    (folder / "002.prom").write_text("vllm:generation_tokens_total 1\n")
    epochs = [reading.epoch for reading in service_readings(read_recording(folder)) if reading]
    assert epochs == ["#0", "#0", "#1"]


def test_a_replica_that_has_no_scrape_is_absent_and_the_service_says_so(tmp_path: Path):
    for name in ("b", "a"):
        write(tmp_path / "svc" / name)
    (tmp_path / "svc/b/001.prom").unlink()
    recording = read_recording(tmp_path / "svc")
    assert recording.engines == ("a", "b")
    middle = recording.snapshots[1]
    assert [reading.engine for reading in middle.engines] == ["a", "svc"]
    service = middle.engine("svc")
    assert service is not None
    assert [replica.replica for replica in service.replicas] == ["a/0"]
    assert service.warnings == ("b is absent",)
    assert len({reading.epoch for reading in service_readings(recording) if reading}) == 1


def test_a_service_whose_engines_are_all_absent_is_absent(tmp_path: Path):
    write(tmp_path / "svc/a", scrapes=2)
    (tmp_path / "svc/a/001.prom").write_text("[]")
    recording = read_recording(tmp_path / "svc")
    assert {absence.source for absence in recording.snapshots[1].absences} == {"engine/a", "engine/svc"}


def test_a_service_never_shares_the_name_of_one_of_its_engines(tmp_path: Path):
    write(tmp_path / "chat/chat")
    assert read_recording(tmp_path / "chat").service == "service"


def test_engines_that_are_services_have_no_answer_in_common(tmp_path: Path):
    engines = [{"name": "a", "engine": {"max_num_seqs": 8}, "slo": {"ttft_seconds": 9}}, {"name": "b"}]
    root = write(tmp_path / "node", scrapes=0, meta_json={"services": True, "engines": engines, "slo": {}})
    for name in ("a", "b"):
        write(root / name)
    recording = read_recording(root)
    assert (recording.engines, recording.service) == (("a", "b"), None)
    a, b = recording.snapshots[-1].engines
    assert (a.engine, a.facts.max_num_seqs, a.slo.ttft_seconds) == ("a", 8, 9)
    assert (b.engine, b.facts.max_num_seqs, b.slo) == ("b", None, Slo())
    write(root, scrapes=0, meta_json={"services": True, "engines": engines[:1]})
    assert read_recording(root).service == "a"


def test_a_gap_in_the_numbers_is_a_gap_in_time(tmp_path: Path):
    folder = write(tmp_path / "r", scrapes=4, meta_json={"numbered": True})
    (folder / "000.prom").unlink()
    (folder / "002.prom").unlink()
    assert [reading and reading.at for reading in service_readings(read_recording(folder))] == [None, 1, None, 3]
    (folder / "later.prom").write_text(SCRAPE)
    assert "name is no number" in mistake(folder)
    (folder / "later.prom").rename(folder / "999999999999.prom")
    assert "beyond 0 to" in mistake(folder)


@pytest.mark.parametrize(
    ("name", "told"),
    [("9" * 200, "beyond 0 to 99999"), ("-5", "is no number"), ("٣", "is no number"), ("a\n\x1b[2J", "?[2J.prom: ")],
)
def test_a_scrape_that_has_no_number_is_named_on_one_line_that_a_terminal_may_have(
    tmp_path: Path, name: str, told: str
):
    folder = write(tmp_path / "r", scrapes=1, meta_json={"numbered": True})
    (folder / f"{name}.prom").write_text(SCRAPE)
    message = mistake(folder)
    assert told in message
    assert message.isprintable()


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path):
    for name in ("meta.json", "gpu.jsonl"):
        folder = write(tmp_path / name)
        (folder / name).symlink_to(folder / "gone")
        assert f"{name}: can't be read (No such file" in mistake(folder)


def test_a_stamp_says_when_a_scrape_was_made_unless_another_step_is_given(tmp_path: Path):
    folder = write(tmp_path / "r", scrapes=2, meta_json={"step_seconds": 5})
    (folder / "001.prom").write_text('# pinchpoint {"at": 4.25}\n' + SCRAPE)
    assert [r.at for r in service_readings(read_recording(folder)) if r] == [0, 4.25]
    assert [r.at for r in service_readings(read_recording(folder, 2)) if r] == [0, 2]


def test_a_stamp_says_why_there_is_no_scrape(tmp_path: Path):
    folder = write(tmp_path / "r", scrapes=2, meta_json={"step_seconds": 1})
    (folder / "001.prom").write_text('# pinchpoint {"at": 0.5, "absent": "timeout", "detail": "no answer"}\n')
    absence = read_recording(folder).snapshots[1].absence("engine/r")
    assert absence is not None
    assert (absence.reason, absence.detail, absence.at) == (Reason.TIMEOUT, "no answer", 0.5)


@pytest.mark.parametrize(
    "stamp", ["", "{", "[]", "1", '{"at": null}', '{"at": 1e999}', '{"at": NaN}', '{"at": 1, "absent": "gremlins"}']
)
def test_a_stamp_that_makes_no_sense_is_a_comment(tmp_path: Path, stamp: str):
    folder = write(tmp_path / "r", scrapes=2, meta_json={"step_seconds": 1})
    (folder / "001.prom").write_text(f"# pinchpoint {stamp}\n{SCRAPE}")
    assert [reading and reading.at for reading in service_readings(read_recording(folder))] == [0, 1]


def test_a_recording_in_which_nothing_was_seen_says_so(tmp_path: Path):
    folder = write(tmp_path / "r", scrapes=0, meta_json={"services": True, "engines": []})
    assert "no engine was seen while it was recorded" in mistake(folder)
    write(folder, scrapes=0, meta_json={"services": True, "engines": [{"name": "a"}]})
    assert "ended before its first step" in mistake(folder)


def gpu(index: int = 0, **readings: object) -> dict[str, object]:
    return {"gpu": str(index), "uuid": f"GPU-{index}", **readings}


def gpus_of(folder: Path, step: int = 0) -> tuple[GpuReading, ...]:
    return read_recording(folder).snapshots[step].gpus


def test_what_is_not_recorded_is_unknown(tmp_path: Path):
    line = {"t": 0, "gpus": [gpu(utilization_ratio=None, power_watts=300, of_tomorrow=1)]}
    assert gpus_of(write(tmp_path / "r", gpu_jsonl=[line])) == (
        GpuReading(gpu="0", uuid="GPU-0", at=0.0, power_watts=300.0),
    )


def test_nvlinks_are_objects_by_link_like_every_labelled_family(tmp_path: Path):
    families = {
        "nvlink_up": {"0": 1, "10": 1, "2": 0},
        "nvlink_link_receive_bytes_total": {"0": 4096},
        "nvlink_errors_total": {"2": {"crc": 7}},
        "nvlink_version": None,
    }
    (reading,) = gpus_of(write(tmp_path / "r", gpu_jsonl=[{"t": 0, "gpus": [gpu(**families)]}]))
    assert reading.nvlinks == (
        NvLink(link="0", up=True, receive_bytes_total=4096.0),
        NvLink(link="2", up=False, errors_total={"crc": 7.0}),
        NvLink(link="10", up=True),
    )


def test_nan_in_a_recording_is_unknown(tmp_path: Path):
    text = '{"t": 0, "gpus": [{"gpu": 0, "uuid": "GPU-0", "power_watts": NaN, "sm_active_ratio": 1e999}]}\n'
    assert gpus_of(write(tmp_path / "r", gpu_jsonl=text)) == (GpuReading(gpu="0", uuid="GPU-0", at=0.0),)


def test_what_is_measured_below_zero_is_unknown(tmp_path: Path):
    below = gpu(power_watts=-1, clock_hertz={"sm": -1.5e9, "memory": 1e9})
    host = {"t": 0, "cpu_count": -4, "engines": {"chat": {"cpu_cores": -0.5, "cpu_limit_cores": 2}}}
    probe = {
        "t": -1,
        "target": "chat",
        "placement": "local",
        "outcome": "ok",
        "ttft_seconds": -1,
        "phases": {"tls": -1},
    }
    folder = write(tmp_path / "r", gpu_jsonl=[{"t": 0, "gpus": [below]}], host_jsonl=[host], probe_jsonl=[probe])
    first = read_recording(folder).snapshots[0]
    assert first.gpus[0].power_watts is None
    assert first.gpus[0].clock_hertz == {"memory": 1e9}
    assert first.host is not None
    assert (first.host.cpu_count, first.host.engines["chat"].cpu_cores) == (None, None)
    assert first.host.engines["chat"].cpu_limit_cores == 2
    assert (first.probes[0].ttft_seconds, first.probes[0].phases) == (None, {})
    assert first.probes[0].at == -1, "a time may be before the first scrape"


def test_a_lost_gpu_is_down_and_its_readings_are_gone(tmp_path: Path):
    (lost,) = gpus_of(write(tmp_path / "r", gpu_jsonl=[{"t": 0, "gpus": [gpu(3, up=0)]}]))
    assert (lost.up, lost.state, lost.utilization_ratio) == (False, GpuState.LOST, None)


def test_a_gpu_line_holds_for_three_steps_and_keeps_its_own_time(tmp_path: Path):
    folder = write(tmp_path / "r", scrapes=6, gpu_jsonl=[{"t": 0.5, "gpus": [gpu()]}])
    assert [[g.at for g in s.gpus] for s in read_recording(folder).snapshots] == [[], [0.5], [0.5], [0.5], [], []]


def test_a_sub_folders_gpus_count_once_and_the_root_speaks_first(tmp_path: Path):
    root = tmp_path / "svc"
    write(root / "a", gpu_jsonl=[{"t": 0, "gpus": [gpu(0, power_watts=1), gpu(1, power_watts=1)]}])
    write(root, scrapes=0, gpu_jsonl=[{"t": 0, "gpus": [gpu(0, power_watts=2)]}])
    assert [(g.gpu, g.power_watts) for g in gpus_of(root)] == [("0", 2.0), ("1", 1.0)]


def test_an_outcome_of_another_version_is_a_failure_that_keeps_its_name(tmp_path: Path):
    probe = {"t": 0, "target": "x", "placement": "local", "outcome": "gremlins", "ttft_seconds": None}
    (reading,) = read_recording(write(tmp_path / "r", probe_jsonl=[probe])).snapshots[0].probes
    assert reading.outcome is ProbeOutcome.INTERNAL
    assert "gremlins" in reading.detail


def test_probes_of_a_recording_are_compared_as_the_daemon_does(tmp_path: Path):
    probes = [
        {"t": t, "target": target, "placement": target, "outcome": "ok", "ttft_seconds": ttft}
        for t in (0, 0.2, 0.4, 99)
        for target, ttft in (("local", 0.9), ("hosted", 0.3))
    ]
    recording = read_recording(write(tmp_path / "r", probe_jsonl=probes))
    assert [{c.target: round(c.ratios.get("ttft", 0), 3) for c in s.comparisons} for s in recording.snapshots][:2] == [
        {"local": 0},
        {"local": 3.0},
    ]


def test_the_latest_probe_of_each_target_is_in_the_snapshot(tmp_path: Path):
    probes = [
        {"t": t, "target": name, "placement": "local", "outcome": "ok"} for t, name in ((0, "x"), (1.5, "x"), (1, "y"))
    ]
    recording = read_recording(write(tmp_path / "r", probe_jsonl=probes))
    assert [{p.target: p.at for p in s.probes} for s in recording.snapshots] == [
        {"x": 0},
        {"x": 0, "y": 1},
        {"x": 1.5, "y": 1},
    ]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"meta_json": "{"}, "meta.json: is no JSON"),
        ({"meta_json": "[]"}, "meta.json: holds a list, not an object"),
        ({"meta_json": {"step_seconds": -1}}, "meta.json: step_seconds: Input should be greater than 0"),
        ({"meta_json": {"engine": {"max_num_seqs": "many"}}}, "meta.json: max_num_seqs: "),
        ({"meta_json": {"engine": {"max_num_seqs": True}}}, "meta.json: max_num_seqs: must be a number above 0"),
        ({"meta_json": {"engine": {"tensor_parallel_size": 0}}}, "meta.json: tensor_parallel_size: must be a number"),
        ({"meta_json": {"engine": {"tensor_parallel_size": 1e9}}}, "above 0 and at most 1e+06, not 1000000000.0"),
        ({"meta_json": {"engine": {"gpu_memory_utilization": 1.5}}}, "at most 1, not 1.5; correct or remove the key"),
        ({"meta_json": {"slo": {"ttft_seconds": -1}}}, "meta.json: ttft_seconds: must be a number above 0"),
        ({"meta_json": {"engines": [{"name": "a", "slo": {"tpot_seconds": 0}}]}}, "meta.json: tpot_seconds: must be"),
        ({"meta_json": {"engines": [{"name": "../x"}]}}, "meta.json: engines.0.name: "),
        ({"meta_json": {"engines": [{"name": ".."}]}}, "meta.json: engines: "),
        ({"meta_json": {"engines": [{"name": "gone"}]}}, "gone: holds no *.prom"),
        ({"gpu_jsonl": '{"t": 0, "gpus": []}\n\n{"t": 1,\n'}, "gpu.jsonl, line 3: is no JSON"),
        ({"gpu_jsonl": [{"gpus": []}]}, 'gpu.jsonl, line 1: "t" is missing'),
        ({"gpu_jsonl": [{"t": 0, "gpus": [{"uuid": "x"}]}]}, 'gpu.jsonl, line 1: "gpus" must be'),
        ({"gpu_jsonl": [{"t": 0, "gpus": [gpu(power_watts="much")]}]}, "gpu.jsonl, line 1: power_watts: "),
        ({"gpu_jsonl": [{"t": 0, "gpus": [gpu(nvlink_up=[1])]}]}, 'line 1: "nvlink_up" must be an object by link'),
        ({"gpu_jsonl": [{"t": 0, "gpus": [gpu(nvlink_up={"0": "x"})]}]}, "gpu.jsonl, line 1: nvlinks.0.up: "),
        ({"host_jsonl": [{"t": 0, "cpu_count": []}]}, "host.jsonl, line 1: cpu_count: "),
        ({"probe_jsonl": [{"t": 0, "target": "x", "outcome": "ok"}]}, "probe.jsonl, line 1: placement: "),
        ({"probe_jsonl": "[" * 100_000 + "\n"}, "probe.jsonl, line 1: is no JSON"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_place(tmp_path: Path, files: dict[str, object], message: str):
    assert message in mistake(write(tmp_path / "r", **files))


def test_a_folder_that_is_not_there_or_empty_is_told(tmp_path: Path):
    assert "is no folder" in mistake(tmp_path / "gone")
    assert "holds no *.prom file" in mistake(tmp_path)


@pytest.mark.parametrize("step", [0, -1, float("nan"), float("inf")])
def test_a_step_must_go_forward(tmp_path: Path, step: float):
    assert "step must be above 0" in mistake(write(tmp_path / "r"), step)


def test_a_named_pipe_is_no_scrape(tmp_path: Path):
    os.mkfifo(write(tmp_path / "r") / "999.prom")
    assert len(read_recording(tmp_path / "r").snapshots) == 3


def test_a_huge_scrape_is_told(tmp_path: Path):
    with (write(tmp_path / "r") / "000.prom").open("wb") as file:
        file.truncate(17 * 2**20)
    assert "000.prom: is larger than" in mistake(tmp_path / "r")


@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,0123456789.e-tgpuNaIity', max_size=80).map(str.encode))
def test_no_bytes_raise_anything_but_the_rooms_own_error(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "0.prom").write_text(SCRAPE)
    for name in ("meta.json", "gpu.jsonl"):
        (folder / name).write_bytes(content)
    try:
        read_recording(folder)
    except RecordingError as error:
        message = str(error)
    else:
        message = ""
    assert "\n" not in message


@given(st.lists(st.integers(0, 20), max_size=8).map(sorted), st.integers(-1, 25), st.integers(0, 10))
def test_the_value_at_a_moment_is_the_newest_that_is_not_too_old(times: list[int], moment: int, age: int):
    fresh = [time for time in times if moment - age <= time <= moment]
    assert Series(tuple(map(float, times)), tuple(times)).at(moment, age) == (max(fresh) if fresh else None)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "1" + "0" * 5000, "1e308", "-1e20", "1e999", "NaN"])
def test_a_number_that_no_reading_can_be_is_unknown(tmp_path: Path, number: str):
    meta = f'{{"engine": {{"max_num_seqs": {number}, "model_config": {{"num_parameters": {number}}}}}}}'
    facts = read_recording(write(tmp_path / "r", meta_json=meta)).facts
    assert facts.max_num_seqs is None
    assert facts.model_config == {"num_parameters": None}


def test_a_pipe_in_the_place_of_a_file_is_refused_without_waiting_for_a_writer(tmp_path: Path):
    os.mkfifo(write(tmp_path / "r") / "gpu.jsonl")
    assert "it is a pipe" in mistake(tmp_path / "r")


def test_nothing_that_a_stamp_says_moves_a_terminal(tmp_path: Path):
    said = '# pinchpoint {"at": 0, "absent": "stale", "detail": "gone\\n\\u001b[2J\\ud800"}\n'
    folder = write(tmp_path / "r", scrapes=1)
    (folder / "000.prom").write_text(said)
    assert read_recording(folder).snapshots[0].absences[0].detail == "gone[2J"


def test_a_step_that_would_lead_beyond_all_numbers_is_refused(tmp_path: Path):
    assert "at most a day" in mistake(write(tmp_path / "r"), 1e308)
