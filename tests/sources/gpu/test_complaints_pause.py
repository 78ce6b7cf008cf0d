"""What users of other exporters complained of: a GPU that can't be reset or unbound while it is watched."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import GpuState, Reason
from pinchpoint.sources.gpu.hold import Hold, open_device_files
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import FAST, Watched, threads

Watch = Callable[..., Watched]


def reason(node: Watched) -> Reason | None:
    return next((absence.reason for absence in node.absences() if absence.source == "gpu"), None)


def paused(node: Watched) -> Watched:
    node.source.pause()
    node.until(lambda: node.source.held_by(time.monotonic()) is None)
    return node


def test_a_pause_shuts_nvml_down_and_a_resume_starts_it_anew(fake: FakeNvml, watch: Watch) -> None:
    node = paused(watch())
    assert (fake.init_count(), fake.count("event_sets")) == (0, 0)
    assert threads() == ["nvml"]  # the one that waits for the resume
    node.until(lambda: reason(node) is Reason.PAUSED)
    assert node.gpus() == ()
    assert node.source.gpus_visible is None  # nobody looked: no GPU is missing
    calls = len(fake.calls())
    time.sleep(0.5)
    assert len(fake.calls()) == calls  # nothing touches the driver meanwhile
    node.source.resume()
    node.until(node.all_up)
    assert (fake.init_count(), node.absences(), node.source.gpus_visible) == (1, (), 8)


def test_a_pause_and_its_end_are_a_line_each_and_no_gpu_is_called_lost(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    with capture_logs() as logs:
        paused(node)
        node.until(lambda: reason(node) is Reason.PAUSED)
        time.sleep(FAST.fresh_for_seconds + 0.1)  # the old readings are old by now
        node.source.resume()
        node.until(lambda: node.gpus() != ())
        assert node.all_up()  # at once, all of them
    assert [entry["event"] for entry in logs] == ["NVML is unavailable", "NVML is available again"]
    assert logs[0]["reason"] == "paused"


def test_a_pause_does_not_pretend_while_a_call_hangs_and_is_done_when_it_returns(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, hang=True)
    node.until(lambda: node.gpu(3).state is GpuState.HUNG)
    node.source.pause()
    node.until(lambda: reason(node) is Reason.HUNG)
    holder = node.source.held_by(time.monotonic())
    assert holder is not None
    assert "nvmlDeviceGetPowerUsage has not returned" in holder
    (absence,) = node.absences()
    assert absence.detail.startswith("a pause was asked for and can't be done: GPU 3: ")
    assert fake.init_count() == 1
    fake.clear()
    node.until(lambda: reason(node) is Reason.PAUSED)
    assert fake.init_count() == 0


def test_a_pause_while_nvml_is_being_started_waits_for_it(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", hang=True)
    node = watch(ready=False)
    node.until(lambda: reason(node) is Reason.HUNG)
    node.source.pause()
    assert "nvmlInit has not returned" in (node.source.held_by(time.monotonic()) or "")
    fake.clear()
    node.until(lambda: reason(node) is Reason.PAUSED)
    assert fake.init_count() == 0


def test_a_pause_during_a_back_off_is_done_at_once_and_so_is_the_resume(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", code=9)
    node = watch(FAST.model_copy(update={"retry_seconds": 30.0}), ready=False)
    node.until(lambda: reason(node) is Reason.NO_DRIVER)
    node.source.pause()
    node.until(lambda: reason(node) is Reason.PAUSED, seconds=1)
    fake.clear()
    node.source.resume()
    node.until(node.all_up, seconds=3)


def test_twice_asked_is_once_done(fake: FakeNvml, watch: Watch) -> None:
    node = paused(paused(watch()))
    node.source.resume()
    node.source.resume()
    node.until(node.all_up)
    assert fake.init_count() == 1


def test_a_resume_before_the_pause_is_done_ends_it(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    for _ in range(20):
        node.source.pause()
        node.source.resume()
    node.until(node.all_up)
    assert fake.init_count() == 1


def test_a_gpu_that_was_reset_meanwhile_is_opened_anew_and_keeps_its_xids(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    node.until(lambda: len(fake.calls("nvmlDeviceRegisterEvents")) == 8)
    fake.event(3, 119)
    node.until(lambda: node.gpu(3).xids)
    fake.fault(gpu=3, code=16)
    node.until(lambda: node.gpu(3).state is GpuState.RESET_REQUIRED)
    paused(node)
    fake.clear()
    node.source.resume()
    node.until(node.all_up)
    assert node.gpu(3).xid_errors_total == {"119": 1}


def test_stop_ends_a_paused_source(fake: FakeNvml, watch: Watch) -> None:
    node = paused(watch())
    began = time.monotonic()
    node.source.stop()
    assert time.monotonic() - began < 1
    assert threads() == []


def test_many_pauses_leave_no_file_no_thread_and_no_reference_behind(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    files, running = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    for _ in range(8):
        paused(node)
        node.source.resume()
        node.until(node.all_up)
    assert (fake.init_count(), fake.count("event_sets")) == (1, 1)
    assert threading.active_count() == running
    assert len(list(Path("/proc/self/fd").iterdir())) <= files + 1


def test_a_device_file_that_is_still_open_is_no_pause(
    fake: FakeNvml, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pinchpoint.sources.gpu.source.open_device_files", lambda: ("/dev/nvidia0",))
    node = watch()
    node.source.pause()
    node.until(lambda: reason(node) is Reason.HUNG)
    assert fake.init_count() == 0
    assert "/dev/nvidia0" in (node.source.held_by(time.monotonic()) or "")


def test_the_device_files_that_a_process_has_open_are_named(tmp_path: Path) -> None:
    (tmp_path / "fd").mkdir()
    for number, target in enumerate(("/dev/nvidia0", "/dev/nvidiactl", "/dev/null", "/dev/nvidia0", "socket:[1]")):
        (tmp_path / "fd" / str(number)).symlink_to(target)
    assert open_device_files(tmp_path) == ("/dev/nvidia0", "/dev/nvidiactl")
    assert open_device_files(tmp_path / "nowhere") == ()


def test_a_hold_is_taken_only_while_no_pause_is_asked_for() -> None:
    hold = Hold()
    assert hold.take()
    hold.pause(5.0)
    hold.pause(9.0)
    assert (hold.taken, hold.paused_at) == (True, 5.0)  # taken until it is dropped
    hold.drop()
    assert not hold.take()
    hold.resume()
    assert (hold.take(), hold.paused_at) == (True, None)


def test_a_pause_that_a_hung_gpu_prevents_costs_the_others_nothing_once_it_is_taken_back(
    fake: FakeNvml, watch: Watch
) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, hang=True)
    node.until(lambda: node.gpu(3).state is GpuState.HUNG)
    node.source.pause()
    node.until(lambda: reason(node) is Reason.HUNG)
    time.sleep(0.5)  # for the supervisor to take note
    node.source.resume()
    for index in range(8):
        if index != 3:
            assert node.next_cycle(index).up
    assert node.gpu(3).state is GpuState.HUNG
