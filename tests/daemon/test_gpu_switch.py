"""A running daemon lets go of the driver, and takes it again."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.daemon import RunningDaemon
from tests.fakes.nvml import FakeNvml

TOKEN = "a-token-of-more-than-16-characters"
PAUSE, RESUME = "/-/gpu/pause", "/-/gpu/resume"
VARIABLE = "PINCHPOINT_GPU__PAUSE_TOKEN"


@pytest.fixture
def nvml(tmp_path: Path) -> FakeNvml:
    return FakeNvml(tmp_path, gpus=2)


def started(folder: Path, nvml: FakeNvml, *flags: str, **gpu: object) -> RunningDaemon:
    settings = {"interval_seconds": 0.2, "deadline_seconds": 1, "retry_seconds": 0.5, "kernel_log": "false", **gpu}
    lines = "".join(f"  {key}: {value}\n" for key, value in settings.items())
    (folder / "pinchpoint.yaml").write_text(f"discovery: {{loopback: false}}\ntick_seconds: 0.2\ngpu:\n{lines}")
    return RunningDaemon(folder, "--config.file", str(folder / "pinchpoint.yaml"), *flags, env=nvml.env())


@pytest.fixture
def daemon(tmp_path: Path, nvml: FakeNvml) -> Iterator[RunningDaemon]:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with started(tmp_path, nvml, "--web.enable-lifecycle", pause_token_file=tmp_path / "token") as daemon:
        daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_up") == [1.0] * 2, "two GPUs")
        yield daemon


def post(daemon: RunningDaemon, path: str, authorization: str | None = f"Bearer {TOKEN}") -> tuple[int, str]:
    request = urllib.request.Request(daemon.url + path, method="POST")
    if authorization is not None:
        request.add_header("Authorization", authorization)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def command(daemon: RunningDaemon, what: str, **environment: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "pinchpoint", "gpu", what, daemon.url]
    return subprocess.run(
        arguments, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=30
    )


def test_a_pause_is_seen_survives_a_hangup_and_ends_with_the_resume(daemon: RunningDaemon, nvml: FakeNvml) -> None:
    daemon.wait_for_series("pinchpoint_gpu_paused", 0.0)
    status, text = post(daemon, PAUSE)
    assert (status, text.startswith("paused: NVML is shut down")) == (200, True)
    daemon.wait_for_series("pinchpoint_gpu_paused", 1.0)
    samples = daemon.samples()
    assert "pinchpoint_gpu_up" not in samples
    assert "pinchpoint_gpus_visible" not in samples  # or it would page for GPUs that are missing
    daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="gpu", reason="paused")
    calls = len(nvml.calls())
    daemon.hang_up()
    daemon.wait_for(lambda: "configuration reloaded" in daemon.log, "the reload")
    time.sleep(0.6)
    assert daemon.series("pinchpoint_gpu_paused") == [1.0]
    assert len(nvml.calls()) == calls
    assert post(daemon, PAUSE)[0] == 200
    assert post(daemon, RESUME) == (200, "resumed: NVML is being started\n")
    daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_up") == [1.0] * 2, "two GPUs")
    assert daemon.series("pinchpoint_gpu_paused") == [0.0]


def test_a_pause_that_a_hung_call_prevents_says_so(daemon: RunningDaemon, nvml: FakeNvml) -> None:
    nvml.fault("nvmlDeviceGetPowerUsage", gpu=1, hang=True)
    daemon.wait_for_series("pinchpoint_gpu_up", 0.0, gpu="1")
    began = time.monotonic()
    status, text = post(daemon, PAUSE)
    assert (status, time.monotonic() - began < 5) == (503, True)
    assert text.startswith("NOT paused: GPU 1: nvmlDeviceGetPowerUsage has not returned")
    daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="gpu", reason="hung")
    assert daemon.series("pinchpoint_gpu_paused") == [0.0]
    done = command(daemon, "pause", **{VARIABLE: TOKEN})
    assert done.returncode == 1
    assert "NOT paused" in done.stderr
    nvml.clear()
    daemon.wait_for_series("pinchpoint_gpu_paused", 1.0)
    assert daemon.terminate()[1] == 0


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN, "Bearer \xff"],
)
def test_without_the_token_nothing_happens(shared: RunningDaemon, authorization: str | None) -> None:
    for path in (PAUSE, RESUME):
        status, text = post(shared, path, authorization)
        assert (status, text) == (401, "the bearer token is missing or wrong\n")
    assert shared.series("pinchpoint_gpu_paused") == [0.0]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    folder = tmp_path_factory.mktemp("shared")
    with started(folder, FakeNvml(folder, gpus=1), "--web.enable-lifecycle", pause_token=TOKEN) as daemon:
        daemon.wait_for_series("pinchpoint_gpu_paused", 0.0)
        yield daemon


def test_the_command_pauses_and_resumes_and_the_token_is_printed_nowhere(shared: RunningDaemon, tmp_path: Path) -> None:
    done = command(shared, "pause", **{VARIABLE: TOKEN})
    assert (done.returncode, done.stdout.startswith("paused: ")) == (0, True)
    done = command(shared, "resume", **{VARIABLE: TOKEN})
    assert (done.returncode, done.stdout) == (0, "resumed: NVML is being started\n")
    wrong = command(shared, "pause", **{VARIABLE: "another-token-of-16"})
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "missing or wrong" in wrong.stderr
    none = command(shared, "pause", **{VARIABLE: ""})
    assert (none.returncode, "no pause token" in none.stderr) == (2, True)
    shared.wait_for(lambda: shared.series("pinchpoint_gpu_up") == [1.0], "the GPU")
    pages = b"".join(shared.get(path) for path in ("/", "/metrics", "/api/v1/status"))
    assert TOKEN not in shared.log + wrong.stderr
    assert TOKEN.encode() not in pages


def test_without_the_flag_or_without_a_token_both_are_off_and_say_which_setting(tmp_path: Path, nvml: FakeNvml) -> None:
    with started(tmp_path, nvml, pause_token=TOKEN) as daemon:
        for path in (PAUSE, RESUME):
            status, text = post(daemon, path)
            assert (status, "--web.enable-lifecycle" in text) == (403, True)
    with started(tmp_path, nvml, "--web.enable-lifecycle") as daemon:
        for path in (PAUSE, RESUME):
            status, text = post(daemon, path, "Bearer ")
            assert (status, "gpu.pause_token_file" in text) == (403, True)


def test_started_before_the_driver_it_finds_it_later(tmp_path: Path, nvml: FakeNvml) -> None:
    nvml.fault("nvmlInitWithFlags", code=9)
    with started(tmp_path, nvml) as daemon:
        daemon.wait_for_series("pinchpoint_metric_unavailable", 1.0, source="gpu", reason="no_driver")
        nvml.clear()
        daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_up") == [1.0] * 2, "two GPUs")


def test_a_new_process_reads_after_one_that_was_killed(tmp_path: Path, nvml: FakeNvml) -> None:
    with started(tmp_path, nvml) as daemon:
        daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_up") == [1.0] * 2, "two GPUs")
        daemon.process.kill()
    with started(tmp_path, nvml) as daemon:
        daemon.wait_for(lambda: daemon.series("pinchpoint_gpu_up") == [1.0] * 2, "two GPUs")
