"""The daemon as a process: what a SIGTERM, a hung driver, a taken port, a bad file and a sick engine do to it."""

import http.server
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.daemon import RunningDaemon, latencies
from tests.fakes.nvml import FakeNvml

EXPOSITION = Path("tests/data/vllm-real/c-moderate/010.prom").read_bytes()


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    fake = FakeNvml(tmp_path, gpus=8)
    fake.set("gpu * util 40")
    return fake


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "pinchpoint.yaml"
    file.write_text("discovery: {loopback: false}\n")
    return file


def up(daemon: RunningDaemon) -> list[float]:
    return [value for _, value in sorted(daemon.samples().get("pinchpoint_gpu_up", {}).items())]


def test_one_hung_gpu_is_down_while_the_others_stay_fresh_and_scrapes_stay_fast(
    tmp_path: Path, nvml: FakeNvml, config: Path
) -> None:
    config.write_text("discovery: {loopback: false}\ngpu: {interval_seconds: 0.5, deadline_seconds: 1}\n")
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        daemon.wait_for(lambda: up(daemon) == [1.0] * 8, "eight GPUs")
        before = statistics.median(latencies(daemon, 60))
        nvml.fault("nvmlDeviceGetUtilizationRates", gpu=3, hang=True)
        daemon.wait_for_series("pinchpoint_gpu_up", 0.0, gpu="3")
        assert daemon.series("pinchpoint_gpu_utilization_ratio", gpu="3") == []
        nvml.set("gpu * util 73")
        daemon.wait_for(
            lambda: daemon.samples().get("pinchpoint_gpu_utilization_ratio", {}).values(), "utilisation", seconds=5
        )
        daemon.wait_for(
            lambda: list(daemon.samples()["pinchpoint_gpu_utilization_ratio"].values()) == [0.73] * 7,
            "seven GPUs to show the new utilisation",
            seconds=5,
        )
        during = statistics.median(latencies(daemon, 60))
        assert during < 3 * before + 0.005, f"{during * 1000:.1f} ms, before the hang {before * 1000:.1f}"
        seconds, code = daemon.terminate()
        assert code == 0
        assert seconds < 2.0, f"SIGTERM took {seconds:.2f} s while a call hangs"
        assert "Traceback" not in daemon.log


def test_http_is_up_and_sigterm_works_while_nvml_init_hangs(tmp_path: Path, nvml: FakeNvml, config: Path) -> None:
    nvml.fault("nvmlInitWithFlags", hang=True)
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        assert daemon.get("/-/healthy")
        daemon.wait_for_series("pinchpoint_source_up", 0.0, source="gpu")
        seconds, code = daemon.terminate()
        assert (code, seconds < 2.0) == (0, True)


def test_without_nvml_the_daemon_runs_on_and_says_why(tmp_path: Path, config: Path) -> None:
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        daemon.wait_for_series("pinchpoint_source_up", 0.0, source="gpu")
        daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="gpu", reason="no_library")
        assert daemon.get("/-/ready")
        assert daemon.log.count("no_library") == 1, daemon.log


def test_a_driver_upgraded_under_the_daemon_is_met_by_a_new_process_once(
    tmp_path: Path, nvml: FakeNvml, config: Path
) -> None:
    config.write_text("discovery: {loopback: false}\ngpu: {retry_seconds: 0.5}\n")
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        daemon.wait_for(lambda: up(daemon) == [1.0] * 8, "eight GPUs")
        nvml.fault(code=18)
        daemon.wait_for(lambda: daemon.log.count("pinchpoint is up") == 2, "the daemon to begin anew")
        assert daemon.process.poll() is None
        daemon.url = re.findall(r'msg="pinchpoint is up".* urls=(\S+)', daemon.log)[-1].strip('"')
        daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="gpu", reason="driver_mismatch")
        nvml.clear()
        daemon.wait_for(lambda: up(daemon) == [1.0] * 8, "eight GPUs")
        assert daemon.log.count("pinchpoint is up") == 2
        assert "Traceback" not in daemon.log
        assert daemon.terminate()[1] == 0


def test_a_taken_port_is_one_line_that_names_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = subprocess.run(
            [sys.executable, "-m", "pinchpoint", "run", "--web.listen-address", address],
            check=False,
            capture_output=True,
            text=True,
            timeout=30,
            cwd=Path.cwd(),
        )
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"pinchpoint: can't listen on {address}: the port is taken")


def test_three_mistakes_are_three_lines_exit_2_and_no_traceback(tmp_path: Path, config: Path) -> None:
    config.write_text(
        "web:\n  listen_adress: ':1'\ntick_seconds: fast\nengines:\n  targets: [{name: a, url: 'ftp://x'}]\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pinchpoint", "run", "--config.file", str(config)],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert ended.returncode == 2
    lines = ended.stderr.splitlines()
    assert len(lines) == 3, ended.stderr
    for key in ("web.listen_adress", "tick_seconds", "engines.targets.0.url"):
        assert any(line.startswith(f"pinchpoint: {config}:") and f" {key}: " in line for line in lines), ended.stderr


class SickEngines(http.server.ThreadingHTTPServer):
    """One server, many engines: the first part of the path says what is wrong with each."""

    daemon_threads = True

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            sickness, _, rest = self.path.lstrip("/").partition("/")
            if rest != "metrics":
                self.send_error(404)
                return
            getattr(self, sickness)()

        def answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body)

        def well(self) -> None:
            self.answer(200, "text/plain; version=0.0.4", EXPOSITION)

        def html(self) -> None:
            self.answer(200, "text/html", b"<!DOCTYPE html><html><body>Welcome to nginx!</body></html>")

        def unauthorized(self) -> None:
            self.answer(401, "application/json", b'{"error":"Unauthorized"}')

        def broken(self) -> None:
            self.answer(500, "text/plain", b"Internal Server Error")

        def half(self) -> None:
            self.answer(200, "text/plain; version=0.0.4", EXPOSITION[:20_000].rsplit(b"\n", 1)[0] + b"\nvllm:nu")

        def huge(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            line = b'vllm:num_requests_running{engine="0"} 1\n' * 25_000
            for _ in range(100):
                self.wfile.write(line)

        def hung(self) -> None:
            time.sleep(60)

        def log_message(self, *_: object) -> None:
            pass

    def handle_error(self, *_: object) -> None:
        """A client that hangs up on 100 MB is the point."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), self.Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def sick() -> Iterator[SickEngines]:
    server = SickEngines()
    yield server
    server.shutdown()
    server.server_close()


REASONS = {
    "html": "not_exposition",
    "unauthorized": "unauthorized",
    "broken": "http_status",
    "half": "truncated",
    "huge": "too_large",
    "hung": "timeout",
    "refused": "connect_refused",
}


def test_a_sick_engine_is_down_with_its_reason_and_everything_else_goes_on(
    tmp_path: Path, config: Path, sick: SickEngines
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    engines = {name: f"{sick.url}/{name}" for name in ("well", *REASONS) if name != "refused"} | {"refused": nobody}
    targets = "".join(f"    - {{name: {name}, url: '{url}'}}\n" for name, url in engines.items())
    config.write_text(f"engines:\n  interval_seconds: 1\n  timeout_seconds: 2\n  targets:\n{targets}")
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="well")
        for name, reason in REASONS.items():
            daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source=f"engine/{name}", reason=reason)
            assert daemon.series("pinchpoint_engine_up", engine=name) == [0.0]
            assert daemon.series("pinchpoint_engine_requests_running", engine=name) == []
        daemon.wait_for(
            lambda: daemon.series("pinchpoint_bottleneck", engine="html", **{"class": "no_data"}) == [1.0],
            "the class of an engine that can't be read",
        )
        assert daemon.series("pinchpoint_engine_requests_running", engine="well") == [4.0]
        rss_bytes = daemon.series("process_resident_memory_bytes")[0]
        assert rss_bytes < 200e6, "a 100 MB body must not be kept"
        assert daemon.log.count('msg="engine lost"') == len(REASONS), "one line on loss, not one per scrape"
        changes = [line for line in daemon.log.splitlines() if 'msg="bottleneck changes"' in line]
        assert sum(" engine=html from=none to=no_data why=" in line for line in changes) == 1, changes
        assert daemon.terminate()[0] < 2.0
        assert "Traceback" not in daemon.log


def test_a_reload_takes_new_engines_and_a_bad_file_changes_nothing(
    tmp_path: Path, config: Path, sick: SickEngines
) -> None:
    def engines(*names: str) -> str:
        targets = "".join(f"    - {{name: {name}, url: '{sick.url}/well'}}\n" for name in names)
        return f"engines:\n  interval_seconds: 1\n  targets:\n{targets}"

    config.write_text(engines("first"))
    with RunningDaemon(tmp_path, "--config.file", str(config), "--web.enable-lifecycle") as daemon:
        daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="first")
        config.write_text(engines("second"))
        daemon.hang_up()
        daemon.wait_for_series("pinchpoint_engine_up", 1.0, engine="second")
        daemon.wait_for(lambda: daemon.series("pinchpoint_engine_up", engine="first") == [], "the old engine to go")
        config.write_text(engines("third") + "nonsense: 1\n")
        daemon.hang_up()
        daemon.wait_for_series("pinchpoint_config_last_reload_successful", 0.0)
        assert "nonsense: is no setting" in daemon.log
        assert daemon.series("pinchpoint_engine_up", engine="second") == [1.0]
        assert daemon.series("pinchpoint_engine_up", engine="third") == []
        config.write_text(engines("second"))
        request = urllib.request.Request(f"{daemon.url}/-/reload", method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200
        daemon.wait_for_series("pinchpoint_config_last_reload_successful", 1.0)
        assert daemon.terminate()[0] < 2.0


def test_a_storm_of_hangups_is_few_reloads_and_the_last_file_holds(tmp_path: Path, config: Path) -> None:
    with RunningDaemon(tmp_path, "--config.file", str(config)) as daemon:
        daemon.wait_for_series("pinchpoint_config_last_reload_successful", 1.0)
        for _ in range(200):
            daemon.hang_up()
        config.write_text("engines: {targets: [{name: last, url: 'http://127.0.0.1:9'}]}\n")
        daemon.hang_up()
        daemon.wait_for_series("pinchpoint_engine_up", 0.0, engine="last")
        assert daemon.log.count('msg="configuration reloaded"') < 100
        assert daemon.terminate()[0] < 2.0
        assert "Traceback" not in daemon.log


@pytest.mark.parametrize("closed", ["2>&-", "1>&-", "0<&- 1>&- 2>&-", ">/dev/full 2>&1"])
def test_it_lives_and_ends_well_without_standard_streams(tmp_path: Path, config: Path, closed: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = (
        f"exec {sys.executable} -m pinchpoint run --config.file {config} --web.listen-address 127.0.0.1:{port} {closed}"
    )
    process = subprocess.Popen(["sh", "-c", start])
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        process.terminate()
        assert process.wait(5) == 0
    finally:
        process.kill()
        process.wait()


def test_sigterm_ends_it_though_every_thread_for_files_hangs(tmp_path: Path, config: Path, nvml: FakeNvml) -> None:
    os.mkfifo(tmp_path / "key")  # reading it waits for a writer, as reading from a dead file server would
    targets = ", ".join(
        f"{{name: t{n}, url: 'http://127.0.0.1:1', api_key_file: {tmp_path / 'key'}, interval_seconds: 1}}"
        for n in range(40)
    )
    config.write_text(f"discovery: {{loopback: false}}\nprobes: {{targets: [{targets}]}}\n")
    with RunningDaemon(tmp_path, "--config.file", str(config), env=nvml.env()) as daemon:
        daemon.wait_for(daemon.samples, "the first tick")
        seconds, code = daemon.terminate()
        assert (code, seconds < 2.0) == (0, True), seconds


def test_a_hangup_while_it_starts_does_not_end_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pinchpoint.yaml"
    os.mkfifo(pipe)  # read until its writer has come: so it is known to be starting
    daemon = RunningDaemon(tmp_path, "--config.file", str(pipe))

    def hang_up_and_configure() -> None:
        with pipe.open("w") as file:
            daemon.process.send_signal(signal.SIGHUP)
            time.sleep(0.2)
            file.write("gpu: {enabled: false}\ndiscovery: {loopback: false}\n")

    writer = threading.Thread(target=hang_up_and_configure, daemon=True)
    writer.start()
    with daemon:
        assert daemon.get("/-/healthy")
    writer.join(5)
