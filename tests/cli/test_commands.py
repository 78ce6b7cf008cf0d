"""The commands: the answer on stdout, everything else on stderr, exit codes that a script can read."""

import http.server
import json
import os
import pty
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from typer.testing import CliRunner, Result

from pinchpoint import __version__
from pinchpoint.cli import app
from pinchpoint.cli.demo import _engine
from pinchpoint.outputs.recorder import Recorder
from pinchpoint.simulator import SCENARIOS, SimulatedNode
from pinchpoint.snapshot import Absence, GpuReading, NvLink, PeerLink, Reason, Snapshot
from pinchpoint.sources.engine import EngineSettings
from tests.outputs.exposition.scenes import engine

RECORDINGS = Path("tests/data/vllm-real")


def pinchpoint(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def of_its_own(*arguments: str, stdout: IO[str] | int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "pinchpoint", *arguments]
    return subprocess.run(command, check=False, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60)


def test_version_and_help_answer() -> None:
    assert pinchpoint("--version").stdout == f"pinchpoint {__version__}\n"
    listing = pinchpoint("--help").stdout
    for command in ("run", "demo", "diagnose", "probe", "check-config", "rules", "dashboards"):
        assert command in listing
        assert "Example" in pinchpoint(command, "--help").stdout, f"{command} --help shows no example"
    for command in ("pause", "resume"):
        assert "Example:" in pinchpoint("gpu", command, "--help").stdout, f"gpu {command} --help shows no example"


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        (["ftp://x"], "a-token-of-16-chars", "is no URL"),
        (["http://127.0.0.1:1"], "a-token-of-16-chars", "see whether pinchpoint runs there"),
        (["http://127.0.0.1:1"], "", "no pause token"),
        (["http://127.0.0.1:1", "--token-file", "/nowhere"], "", "/nowhere: can't be read"),
        (["http://127.0.0.1:1"], "two\nlines-of-16-chars", "no pause token"),
    ],
)
def test_gpu_pause_of_nothing_is_one_line_and_exit_2(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], environment: str, said: str
) -> None:
    monkeypatch.setenv("PINCHPOINT_GPU__PAUSE_TOKEN", environment)
    result = pinchpoint("gpu", "pause", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1, result.stderr
    assert said in result.stderr
    assert not environment or environment not in result.stderr


@pytest.mark.parametrize(
    ("recording", "bottleneck", "code"),
    [
        ("a-fresh", "idle", 0),
        ("b-idle-after", "idle", 0),
        ("c-moderate", "healthy", 0),
        ("d-kv-saturated", "kv_capacity", 1),
    ],
)
def test_a_recording_of_a_real_engine_is_named_for_what_it_is(recording: str, bottleneck: str, code: int) -> None:
    result = pinchpoint("diagnose", "--replay", str(RECORDINGS / recording), "--json")
    answer = json.loads(result.stdout)
    assert answer["class"] == bottleneck
    assert result.exit_code == code
    assert {"runner_up", "confidence", "scores", "evidence", "missing", "advice", "more_gpus_help"} <= answer.keys()
    assert answer["timeline"][0]["start"] == 0
    assert answer["timeline"][-1]["class"] in (bottleneck, "idle")


def test_replicas_in_folders_give_one_answer_and_each_replica_its_own() -> None:
    answer = json.loads(pinchpoint("diagnose", "--replay", "tests/data/recordings/replica-folders", "--json").stdout)
    assert "class" in answer
    assert list(answer["engines"]) == ["engine-0", "engine-1", "engine-2", "engine-3"]


def test_services_that_were_recorded_side_by_side_each_have_their_answer_and_no_other(tmp_path: Path) -> None:
    now = [replace(engine(name), at=5.0) for name in ("chat", "rag")]
    gone = Absence("engine/gone", Reason.CONNECT_REFUSED, "engine gone at http://h:1: refused", 0.0)
    recorder = Recorder(tmp_path / "r", 5.0)
    for step in range(4):
        engines = tuple(replace(reading, at=5.0 * step) for reading in now)
        recorder.write(Snapshot(at=5.0 * step, engines=engines, absences=(gone,)))
    result = pinchpoint("diagnose", "--replay", str(tmp_path / "r"), "--json")
    answer = json.loads(result.stdout)
    assert answer.keys() == {"engines", "topology", "findings"}
    assert answer["topology"] is None
    assert list(answer["engines"]) == ["chat", "gone", "rag"]
    assert answer["engines"]["gone"]["class"] == "no_data"
    assert "refused" in answer["engines"]["gone"]["why"]
    assert result.exit_code == 1
    text = pinchpoint("diagnose", "--replay", str(tmp_path / "r")).stdout
    assert [line.split(":")[0] for line in text.splitlines() if not line.startswith(" ")] == ["chat", "gone", "rag"]


def test_how_the_gpus_are_connected_is_told_with_what_it_means_for_the_engine(tmp_path: Path) -> None:
    links = (PeerLink("0", "1", "PIX"), PeerLink("0", "2", "SYS"), PeerLink("1", "2", "SYS"))
    recorder = Recorder(tmp_path / "r", 1.0)
    for second in range(4):
        at = float(second)
        up = second < 2  # then one of the links goes down
        gpus = tuple(
            GpuReading(gpu=g, uuid=f"GPU-{g}", at=at, nvlinks=(NvLink(link="4", up=up and g == "1"),)) for g in "012"
        )
        known = links if second else ()  # the walk takes a while
        two = replace(engine("chat"), at=at, gpus=("0", "2"))
        recorder.write(Snapshot(at=at, engines=(two,), gpus=gpus, links=known))
    answer = json.loads(pinchpoint("diagnose", "--replay", str(tmp_path / "r"), "--json").stdout)
    topology = answer["topology"]
    assert topology["gpus"] == ["0", "1", "2"]
    assert topology["matrix"] == [["X", "PIX", "SYS"], ["PIX", "X", "SYS"], ["SYS", "SYS", "X"]]
    (judgement,) = topology["judgements"]
    assert (judgement["gpus"], judgement["kind"], judgement["verdict"]) == (["0", "2"], "crosses_sockets", "use_dp")
    assert topology["links_lost"] == {"1": ["4"]}
    text = pinchpoint("diagnose", "--replay", str(tmp_path / "r")).stdout
    assert [line.split() for line in text.splitlines() if line.startswith("  GPU1")] == [["GPU1", "PIX", "X", "SYS"]]
    assert ": use_dp  GPU 0 and GPU 2 are on different CPU sockets (SYS)." in text
    assert "GPU 1: NVLink 4 was up and is down" in text


def test_what_differs_among_the_gpus_is_a_finding_with_its_remedy(tmp_path: Path) -> None:
    limits = {"0": 700.0, "1": 700.0, "2": 500.0}
    recorder = Recorder(tmp_path / "r", 1.0)
    for second in range(4):
        at = float(second)
        gpus = tuple(GpuReading(gpu=g, uuid=f"GPU-{g}", at=at, power_limit_watts=w) for g, w in limits.items())
        recorder.write(Snapshot(at=at, engines=(replace(engine("chat"), at=at),), gpus=gpus))
    (finding,) = json.loads(pinchpoint("diagnose", "--replay", str(tmp_path / "r"), "--json").stdout)["findings"]
    assert (finding["check"], finding["gpus"]) == ("power_limit", ["0", "1", "2"])
    text = pinchpoint("diagnose", "--replay", str(tmp_path / "r")).stdout
    assert "finding    power limits differ: 700 W on GPUs 0 and 1; 500 W on GPU 2" in text
    assert "remedy     Set one limit for all (nvidia-smi -pl WATTS)" in text


def test_a_recorded_engine_that_never_answered_is_no_data_with_its_reason(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r", 1.0)
    for second in range(3):
        refused = Absence("engine/chat", Reason.CONNECT_REFUSED, "engine chat at http://h:1: nobody listens", 0.0)
        recorder.write(Snapshot(at=float(second), absences=(refused,)))
    result = pinchpoint("diagnose", "--replay", str(tmp_path / "r"), "--json")
    answer = json.loads(result.stdout)
    assert (answer["engine"], answer["class"], result.exit_code) == ("chat", "no_data", 1)
    assert "nobody listens" in answer["why"]


def test_a_url_that_is_none_is_named(tmp_path: Path) -> None:
    for command in ("diagnose", "probe"):
        result = pinchpoint(command, "ftp://user:hunter2@host")
        assert result.exit_code == 2
        assert result.stderr.startswith("pinchpoint: ftp://***@host: is no http:// or https:// URL"), result.stderr


def test_a_variable_that_is_wrong_is_a_line_for_diagnose_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINCHPOINT_TICK_SECONDS", "soon")
    result = pinchpoint("diagnose", "http://127.0.0.1:9")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1), result.output
    assert "environment PINCHPOINT_TICK_SECONDS" in result.stderr


def test_a_folder_to_record_into_that_holds_something_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "old.prom").write_text("")
    result = pinchpoint("run", "--record", str(tmp_path))
    assert result.exit_code == 2
    assert result.stderr == f"pinchpoint: --record {tmp_path}: is not empty; name a folder that is empty or new\n"


def test_each_example_of_a_help_stands_on_its_own_line() -> None:
    lines = [line.strip() for line in pinchpoint("diagnose", "--help").stdout.splitlines()]
    examples = [line for line in lines if line.startswith("pinchpoint")]
    assert len(examples) == 4
    assert all(example.count("pinchpoint") == 1 for example in examples)


def test_diagnose_of_nothing_is_one_line_and_exit_2(tmp_path: Path) -> None:
    for arguments in (["--replay", str(tmp_path)], ["--replay", str(tmp_path / "absent")], ["ftp://x"]):
        result = pinchpoint("diagnose", *arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1, result.stderr
    both = pinchpoint("diagnose", "http://127.0.0.1:1", "--replay", str(tmp_path))
    assert both.stderr == "pinchpoint: give URLs to watch or --replay, not both\n"


def test_check_config_says_fine_or_every_mistake(tmp_path: Path) -> None:
    file = tmp_path / "pinchpoint.yaml"
    file.write_text("tick_seconds: 2\n")
    fine = pinchpoint("check-config", str(file))
    assert (fine.exit_code, fine.stdout) == (0, f"{file}: fine\n")
    file.write_text("tick_seconds: 0\nwbe: {}\n")
    bad = pinchpoint("check-config", str(file))
    assert bad.exit_code == 1
    assert len(bad.stderr.splitlines()) == 2
    assert pinchpoint("check-config", str(tmp_path / "absent")).exit_code == 2


def test_check_config_explains_where_each_value_came_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, shared = tmp_path / "pinchpoint.yaml", tmp_path / "settings.json"
    file.write_text("tick_seconds: 2\n")
    shared.write_text('{"VLLM_MAX_NUM_SEQS": 16,\n "TAOTOKEN_MODEL": "gpt-4o-mini"}')
    monkeypatch.setenv("VLLM_MAX_NUM_SEQS", "32")
    monkeypatch.setenv("TAOTOKEN_API_KEY", "sk-canary-0123456789")
    said = pinchpoint("check-config", str(file), "--settings.file", str(shared), "--explain")
    lines = said.stdout.splitlines()
    assert (said.exit_code, lines[0]) == (0, f"{file}: fine")
    assert lines[1].startswith(f"note: {shared}:1: VLLM_MAX_NUM_SEQS: is 16, and environment VLLM_MAX_NUM_SEQS says 32")
    assert f"tick_seconds = 2.0  ({file}:1)" in lines
    assert "probes.targets.0.api_key = ***  (environment TAOTOKEN_API_KEY)" in lines
    answer = json.loads(pinchpoint("check-config", "--settings.file", str(shared), "--json").stdout)
    assert {"key": "local_engine.max_num_seqs", "value": "32", "where": "environment VLLM_MAX_NUM_SEQS"} in (
        answer["settings"]
    )
    assert [note["key"] for note in answer["notes"]] == ["VLLM_MAX_NUM_SEQS"]
    assert "canary" not in said.output + str(answer)
    shared.write_text("{")
    bad = pinchpoint("check-config", "--settings.file", str(shared), "--json")
    assert (bad.exit_code, json.loads(bad.stdout)["fine"]) == (1, False)


def test_the_shipped_example_configuration_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    for example in sorted(Path("deploy").rglob("pinchpoint*.yaml")):
        result = pinchpoint("check-config", str(example))
        assert result.exit_code == 0, result.stderr


def test_demo_lists_its_scenarios_and_refuses_others() -> None:
    assert pinchpoint("demo", "--scenario", "list").stdout.split() == list(SCENARIOS)
    wrong = pinchpoint("demo", "--scenario", "chaos")
    assert wrong.exit_code == 2
    assert "no such scenario" in wrong.stderr


async def test_the_simulated_engines_are_a_configuration_that_loads() -> None:
    node = SimulatedNode()
    await node.start()
    try:
        for target in node.targets():
            assert EngineSettings.model_validate(_engine(target)).target().facts.known() == target.facts.known()
    finally:
        await node.stop()


def test_probe_refuses_what_is_no_target() -> None:
    result = pinchpoint("probe", "chat")
    assert result.exit_code == 2
    assert "neither a URL nor a configured target" in result.stderr


def test_probe_of_nobody_says_what_to_do_and_is_bad_news() -> None:
    result = pinchpoint("probe", "http://127.0.0.1:9", "--json")
    assert result.exit_code == 1
    (reading,) = json.loads(result.stdout)
    assert reading["outcome"] == "connect_refused"
    assert reading["remedy"]
    assert "ttft_seconds" not in reading
    assert "connection" not in reading
    assert abs(reading["at"] - time.time()) < 60, "Unix time"


@pytest.mark.parametrize(("command", "folder"), [("rules", "alerts"), ("dashboards", "grafana/dashboards")])
def test_generated_files_are_the_committed_ones(tmp_path: Path, command: str, folder: str) -> None:
    assert pinchpoint(command, str(tmp_path)).exit_code == 0
    written = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert written
    for path in written:
        assert (tmp_path / path).read_text() == next(
            Path(folder.split("/", maxsplit=1)[0]).rglob(path.name)
        ).read_text()


def test_a_server_that_speaks_in_markup_is_printed_as_it_speaks() -> None:
    class Server(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"error": {"message": "[/red] no [bold]such[/bold] door"}}'
            self.send_response(401)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = of_its_own("probe", f"http://127.0.0.1:{server.server_port}/[/bold]")
        server.shutdown()
    assert result.returncode == 1
    assert "[/red] no [bold]such[/bold] door" in " ".join(result.stdout.split())


def test_a_recording_in_a_folder_named_like_markup_is_explained(tmp_path: Path) -> None:
    folder = shutil.copytree(RECORDINGS / "a-fresh", tmp_path / "[bold] [red]")
    assert "[bold] [red]: Idle" in pinchpoint("diagnose", "--replay", str(folder)).stdout


def test_a_url_longer_than_a_name_may_be_is_probed() -> None:
    result = of_its_own("probe", "http://127.0.0.1:1/" + "a" * 200, "--json")
    assert json.loads(result.stdout)[0]["outcome"] == "connect_refused"


def test_diagnose_with_a_bad_variable_is_one_line_and_exit_2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINCHPOINT_TICK_SECONDS", "soon")
    result = pinchpoint("diagnose", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert result.stderr.startswith("pinchpoint: environment PINCHPOINT_TICK_SECONDS: tick_seconds: ")
    assert len(result.stderr.splitlines()) == 1


def test_an_answer_for_which_the_disk_has_no_room_is_one_line_and_exit_2() -> None:
    with Path("/dev/full").open("w") as full:
        ended = of_its_own("diagnose", "--replay", str(RECORDINGS / "a-fresh"), "--json", stdout=full)
    assert (ended.returncode, ended.stderr) == (2, "pinchpoint: No space left on device\n")


def test_a_terminal_that_watches_gets_progress_though_the_url_looks_like_markup() -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pinchpoint", "diagnose", "http://127.0.0.1:1/[/bold]", "--seconds", "5"]
    ended = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 65_536).decode(errors="replace")
    os.close(ours)
    assert "watching 127.0.0.1:1/[/bold]" in shown
    assert "Traceback" not in shown
    assert ended.stdout.startswith("127.0.0.1:1/[/bold]: No data")
    assert ended.returncode == 1


@pytest.mark.parametrize("url", ["http://127.0.0.1:port", "http://127.0.0.1:10770/ x"])
def test_a_url_that_is_none_is_told_in_a_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINCHPOINT_GPU__PAUSE_TOKEN", "a-token-of-more-than-16-characters")
    result = pinchpoint("gpu", "pause", url)
    assert result.exit_code == 2
    assert "see whether pinchpoint runs there" in result.stderr
