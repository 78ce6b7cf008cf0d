"""What users of other exporters complained of: a sick GPU that looks well, and an exporter that never recovers."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pinchpoint.snapshot import GpuState, Reason
from tests.fakes.nvml import FakeNvml, scenarios
from tests.sources.gpu.conftest import Opened, Watched

Watch = Callable[..., Watched]
Open = Callable[..., Opened]


def bus_with(gpus: int, root: Path) -> Path:
    for index in range(gpus):
        device = root / f"bus/pci/devices/0000:{0x10 + index:02x}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "class").write_text("0x030200\n")
    return root


def test_a_gpu_that_was_never_enumerated_at_boot_is_missed(fake: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    fake.set("gpus 7")
    node = watch(ready=False, sysfs=bus_with(8, tmp_path / "sys"))
    node.until(lambda: node.all_up(7))
    assert (node.source.gpus_expected, node.source.gpus_visible) == (8, 7)


def test_a_gpu_that_falls_off_is_down_and_is_still_expected(fake: FakeNvml, watch: Watch, tmp_path: Path) -> None:
    root = bus_with(8, tmp_path / "sys")
    node = watch(sysfs=root)
    lost = node.gpu(7)
    fake.set("gpus 7")
    (root / "bus/pci/devices/0000:17:00.0").rename(tmp_path / "gone")
    node.until(lambda: node.source.gpus_visible == 7 and not node.gpu(7).up)
    assert (node.gpu(7).uuid, node.gpu(7).state) == (lost.uuid, GpuState.LOST)
    assert node.source.gpus_expected == 8
    assert len(node.gpus()) == 8


def test_a_gpu_lost_in_the_middle_of_its_work_is_down_soon_and_keeps_its_counters(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 3 ecc.1.0 4", "gpu 3 pcie_replay 9")
    node = watch()
    scenarios.lost_at_call(fake, calls=5)
    fake.set("gpu 3 ecc.1.0 4", "gpu 3 pcie_replay 9")
    node.until(lambda: node.gpu(3).state is GpuState.LOST)
    gone = node.gpu(3)
    assert gone.ecc_errors_total == {"correctable": 0, "uncorrectable": 4}
    assert (gone.pcie_replay_total, gone.power_watts, gone.remapped_rows) == (9, None, {})
    assert [gpu.up for gpu in node.gpus()] == [True] * 3 + [False] + [True] * 4


def test_a_gpu_that_works_but_is_asked_to_be_reset_says_so(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 recovery_action 1", "gpu 0 rows.pending 1", "gpu 0 ecc.1.0 1")
    reading = opened().read()
    assert (reading.up, reading.recovery_action) == (True, "gpu_reset")
    assert reading.remapped_rows["pending"] == 1
    assert reading.ecc_errors_total["uncorrectable"] == 1


def test_a_gpu_that_must_be_reset_is_down_with_that_state_and_the_drivers_request(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    scenarios.reset_required(fake)
    node.until(lambda: node.gpu(5).state is GpuState.RESET_REQUIRED)
    gpu = node.gpu(5)
    assert (gpu.up, gpu.recovery_action) == (False, "gpu_reset")
    assert "nvidia-smi --gpu-reset" in gpu.detail
    fake.fault("nvmlDeviceGetHandleByIndex_v2", gpu=5, code=16)  # the attempts that follow can't even open it
    opens = len(fake.calls("nvmlDeviceGetHandleByIndex_v2", gpu=5))
    node.until(lambda: len(fake.calls("nvmlDeviceGetHandleByIndex_v2", gpu=5)) > opens + 2)
    assert node.gpu(5).recovery_action == "gpu_reset"
    fake.clear()
    fake.set("gpu 5 recovery_action 0")
    node.until(node.all_up)
    assert node.gpu(5).recovery_action == "none"


@pytest.mark.parametrize("code", [15, 16])
def test_a_gpu_past_answering_makes_no_recovery_action_up(fake: FakeNvml, watch: Watch, code: int) -> None:
    node = watch()
    fake.fault(gpu=3, code=code)
    node.until(lambda: not node.gpu(3).up)
    assert node.gpu(3).recovery_action is None  # "none" would read as well


def test_in_a_container_that_lost_its_gpus_the_state_comes_with_a_hint_and_it_keeps_trying(
    fake: FakeNvml, watch: Watch
) -> None:
    """As after ``systemctl daemon-reload``: Unknown Error from init, or from each GPU, until somebody mends it."""
    fake.fault("nvmlInitWithFlags", code=999)
    node = watch(ready=False)
    node.until(lambda: node.absences()[0].reason is Reason.DRIVER_ERROR)
    assert "in a container recreate it with its GPUs" in node.absences()[0].detail
    fake.clear()
    fake.fault("nvmlDeviceGetHandleByIndex_v2", code=999)
    node.until(lambda: len(node.gpus()) == 8)
    assert {gpu.state for gpu in node.gpus()} == {GpuState.UNKNOWN}
    assert all("in a container recreate it with its GPUs" in gpu.detail for gpu in node.gpus())
    fake.clear()
    node.until(node.all_up)


def test_a_gpu_that_the_cgroup_closes_to_us_is_access_denied_with_a_hint(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(gpu=2, code=17)
    node.until(lambda: node.gpu(2).state is GpuState.ACCESS_DENIED)
    assert "recreate the container with its GPUs" in node.gpu(2).detail
    assert [gpu.gpu for gpu in node.gpus() if not gpu.up] == ["2"]


def test_started_before_the_driver_it_recovers_by_itself(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlInitWithFlags", code=9)
    node = watch(ready=False)
    node.until(lambda: len(fake.calls("nvmlInitWithFlags")) >= 3)
    assert node.absences()[0].reason is Reason.NO_DRIVER
    fake.clear()
    node.until(node.all_up)


def test_a_driver_upgraded_under_the_process_says_that_only_a_new_process_helps(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    assert node.source.outdated is False
    fake.fault(code=18)
    node.until(lambda: node.source.outdated)
    (absence,) = node.absences()
    assert absence.reason is Reason.DRIVER_MISMATCH
    assert "restart pinchpoint" in absence.detail


def test_a_library_that_never_matched_is_no_reason_to_start_over(fake: FakeNvml, watch: Watch) -> None:
    """A container with the wrong library would restart for ever, and its engines would go unobserved."""
    fake.fault("nvmlInitWithFlags", code=18)
    node = watch(ready=False)
    node.until(lambda: node.absences()[0].reason is Reason.DRIVER_MISMATCH)
    time.sleep(0.3)
    assert node.source.outdated is False
