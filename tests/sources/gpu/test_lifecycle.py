"""NVML as a whole comes, goes, hangs and comes back."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import GpuState, Reason
from pinchpoint.sources.gpu import GpuSettings
from pinchpoint.sources.gpu.pci import count_nvidia_gpus
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import FAST, Watched, threads

Watch = Callable[..., Watched]

PROGRAM = """
import json, signal, sys, time
from pinchpoint.sources.gpu import GpuSettings, GpuSource
source = GpuSource(GpuSettings(interval_seconds=0.2, deadline_seconds=0.5, retry_seconds=0.3))
signal.signal(signal.SIGTERM, lambda *_: (source.stop(), sys.exit(0)))
source.start()
while True:
    gpus, absences = source.readings(time.monotonic())
    said = {"up": sum(g.up for g in gpus), "states": [g.state for g in gpus],
            "absences": [[a.source, a.reason, a.detail] for a in absences]}
    print(json.dumps(said), flush=True)
    time.sleep(0.05)
"""


def program(environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, text=True)


def first_line(process: subprocess.Popen[str], wanted: Callable[[dict[str, list[object]]], object]) -> dict[str, list]:
    assert process.stdout is not None
    lines = (json.loads(line) for line in process.stdout if line.startswith("{"))  # the log is there too
    return next(said for said in lines if wanted(said))


def absent_reason(node: Watched) -> Reason | None:
    return next((absence.reason for absence in node.absences() if absence.source == "gpu"), None)


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (9, Reason.NO_DRIVER, "modprobe nvidia"),
        (12, Reason.NO_LIBRARY, "install the NVIDIA driver"),
        (18, Reason.DRIVER_MISMATCH, "restart pinchpoint"),
        (17, Reason.ACCESS_DENIED, "recreate the container"),
        (4, Reason.ACCESS_DENIED, "run as a user who may"),
        (999, Reason.DRIVER_ERROR, "dmesg"),
        (20, Reason.DRIVER_ERROR, "dmesg"),
    ],
)
def test_an_init_that_fails_says_why_and_later_works(
    fake: FakeNvml, watch: Watch, code: int, reason: Reason, remedy: str
) -> None:
    fake.fault("nvmlInitWithFlags", code=code)
    node = watch(ready=False)
    node.until(lambda: absent_reason(node) is reason)
    (absence,) = node.absences()
    assert remedy in absence.detail
    assert "\n" not in absence.detail
    assert node.gpus() == ()
    assert node.source.gpus_visible == 0
    assert node.source.report(time.monotonic()).up is False
    fake.clear()
    node.until(node.all_up)
    assert node.absences() == ()
    report = node.source.report(time.monotonic())
    assert report.up
    assert report.last_success_timestamp_seconds == pytest.approx(time.time(), abs=5)


def test_an_absence_counts_from_its_beginning_through_retries_that_fail(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", code=9)
    node = watch(ready=False)
    began = node.absences()[0].at
    node.until(lambda: absent_reason(node) is Reason.NO_DRIVER)
    fake.clear()
    fake.fault("nvmlInitWithFlags", code=18)
    node.until(lambda: absent_reason(node) is Reason.DRIVER_MISMATCH)
    assert node.absences()[0].at == began


def test_before_the_first_init_has_ended_nvml_is_starting(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", sleep_ms=300)
    node = watch(ready=False)
    assert absent_reason(node) is Reason.STARTING
    node.until(node.all_up)


def test_without_the_library_the_reason_is_that(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").touch()  # shadows a real one, and is no library
    process = program({"LD_LIBRARY_PATH": str(tmp_path), "PATH": ""})
    try:
        said = first_line(process, lambda said: said["absences"] and said["absences"][0][1] != "starting")
        ((source, reason, detail),) = said["absences"]
        assert (source, reason) == ("gpu", "no_library")
        assert "libnvidia-ml.so.1 was not found" in detail
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("function", ["nvmlInitWithFlags", "nvmlDeviceGetPowerUsage"])
def test_a_process_ends_within_two_seconds_while_a_call_hangs(tmp_path: Path, function: str) -> None:
    fake = FakeNvml(tmp_path)
    fake.fault(function, hang=True)
    process = program(fake.env())
    try:
        first_line(process, lambda said: "hung" in said["states"] or any(a[1] == "hung" for a in said["absences"]))
        told = time.monotonic()
        process.terminate()
        process.communicate(timeout=10)
        assert time.monotonic() - told < 2
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_stop_does_not_wait_for_an_init_that_hangs(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", hang=True)
    node = watch(ready=False)
    node.until(lambda: fake.calls("nvmlInitWithFlags"))
    began = time.monotonic()
    node.source.stop()
    assert time.monotonic() - began < 1


def test_an_init_that_hangs_is_named_and_works_when_it_returns(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", hang=True)
    node = watch(ready=False)
    node.until(lambda: absent_reason(node) is Reason.HUNG)
    assert "nvmlInit has not returned" in node.absences()[0].detail
    fake.clear()
    node.until(node.all_up)
    assert node.absences() == ()


def test_stop_leaves_nvml_shut_down_and_no_thread(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    assert fake.init_count() == 1
    began = time.monotonic()
    node.source.stop()
    assert time.monotonic() - began < 1
    assert fake.init_count() == 0
    assert threads() == []


def test_stop_does_not_shut_nvml_down_under_a_call_that_hangs(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(gpu=3, hang=True)
    node.until(lambda: not node.gpu(3).up)
    node.source.stop()
    assert fake.init_count() == 1
    assert fake.calls("nvmlShutdown") == []


def test_no_gpu_at_all_is_an_absence_and_not_an_idle_node(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpus 0")
    node = watch(ready=False)
    node.until(lambda: absent_reason(node) is Reason.NO_DEVICES)
    fake.set("gpus 2")
    node.until(lambda: node.all_up(2))


def test_a_driver_that_goes_away_takes_all_gpus_and_brings_them_back(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    with capture_logs() as logs:
        fake.fault(code=9)
        node.until(lambda: absent_reason(node) is Reason.NO_DRIVER)
        assert node.gpus() == ()
        fake.clear()
        node.until(node.all_up)
    assert [entry["event"] for entry in logs] == ["NVML is unavailable", "NVML is available again"]


def test_a_driver_that_is_upgraded_underneath_asks_for_a_restart(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(code=18)
    node.until(lambda: absent_reason(node) is Reason.DRIVER_MISMATCH)
    assert "restart pinchpoint" in node.absences()[0].detail


def test_a_gpu_that_vanishes_from_the_count_stays_known_as_lost(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.set("gpus 7")
    node.until(lambda: node.source.gpus_visible == 7 and node.gpu(7).state is GpuState.LOST)
    assert [gpu.up for gpu in node.gpus()] == [True] * 7 + [False]
    assert node.gpu(7).uuid == "GPU-fa000007-0000-4000-8000-000000000007"
    fake.set("gpus 8")
    node.until(node.all_up)
    assert node.source.gpus_visible == 8


def test_a_gpu_keeps_its_identity_when_the_order_changes(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpus 2", "gpu 0 temp 50", "gpu 1 temp 60")
    node = watch(ready=False)
    node.until(lambda: node.all_up(2))
    first, second = (gpu.uuid for gpu in node.gpus())
    fake.fault(code=1)
    node.until(lambda: absent_reason(node) is not None)
    fake.set(f"gpu 0 uuid {second}", f"gpu 1 uuid {first}", "gpu 0 temp 60", "gpu 1 temp 50")
    fake.clear()
    node.until(lambda: node.all_up(2) and node.gpu(0).uuid == second)
    readings = {gpu.uuid: gpu.temperature_celsius["gpu"] for gpu in node.gpus()}
    assert readings == {first: 50, second: 60}


def test_a_hung_gpu_keeps_nvml_from_being_started_anew_for_the_sake_of_a_count(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(gpu=3, hang=True)
    node.until(lambda: not node.gpu(3).up)
    fake.set("gpus 7")
    node.until(lambda: node.gpu(7).state is GpuState.LOST)
    time.sleep(3 * FAST.retry_seconds)
    assert [gpu.gpu for gpu in node.gpus() if not gpu.up] == ["3", "7"]
    assert fake.calls("nvmlShutdown") == []


def test_many_fresh_starts_leave_neither_threads_nor_open_libraries(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    for count in (7, 8, 6, 8, 5, 8):
        fake.set(f"gpus {count}")
        node.until(lambda count=count: node.source.gpus_visible == count and sum(g.up for g in node.gpus()) == count)
    assert fake.init_count() == 1
    assert len(threads()) == 3 + 8  # the supervisor, the topology, the events


def test_a_source_that_is_off_says_so(fake: FakeNvml, watch: Watch) -> None:
    node = watch(GpuSettings(enabled=False), ready=False)
    assert absent_reason(node) is Reason.NOT_CONFIGURED
    assert fake.calls() == []


def test_expected_gpus_are_counted_on_the_bus_unless_set(fake: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    devices = tmp_path / "sys/bus/pci/devices"
    for address, vendor, kind in [
        ("0000:10:00.0", "0x10de", "0x030200"),
        ("0000:11:00.0", "0x10de", "0x030000"),
        ("0000:12:00.0", "0x10de", "0x068000"),  # an NVSwitch
        ("0000:13:00.0", "0x1a03", "0x030000"),  # the board's own VGA
    ]:
        (devices / address).mkdir(parents=True)
        (devices / address / "vendor").write_text(f"{vendor}\n")
        (devices / address / "class").write_text(f"{kind}\n")
    (devices / "0000:14:00.0").mkdir()
    assert watch(sysfs=tmp_path / "sys").source.gpus_expected == 2
    assert watch(FAST.model_copy(update={"gpus_expected": 8}), sysfs=tmp_path / "sys").source.gpus_expected == 8
    assert count_nvidia_gpus(tmp_path / "nowhere") is None
