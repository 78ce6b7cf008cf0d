"""One GPU fails in every way it can; the other seven don't notice."""

import time
from collections.abc import Callable
from dataclasses import fields

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import GpuReading, GpuState, ThrottleReason
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import FAST, Watched

Watch = Callable[..., Watched]

STAYS = {"gpu", "uuid", "at", "up", "state", "detail", "name", "pci_bus_id", "minor_number", "driver"} | {
    "energy_joules_total",
    "throttle_seconds_total",
    "ecc_errors_total",
    "pcie_replay_total",
    "nvml",
    "architecture",
    "memory_model",
    "virtualization",
    "last_success_at",
    "missed_cycles_total",
    "invalid_samples_total",
}


def assert_only_identity_and_counters_are_left(gpu: GpuReading) -> None:
    gone = [getattr(gpu, field.name) for field in fields(gpu) if field.name not in STAYS]
    assert not any(gone)
    assert (gpu.uuid, gpu.name) == (f"GPU-fa00000{gpu.gpu}-0000-4000-8000-00000000000{gpu.gpu}", "NVIDIA H200")


def assert_others_stay_fresh(node: Watched, sick: int, seconds: float = 0.5) -> None:
    """Up the whole time, and never older than a few cycles."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        now = time.monotonic()
        others = [gpu for gpu in node.source.readings(now)[0] if gpu.gpu != str(sick)]
        assert len(others) == 7
        assert all(gpu.up and now - gpu.at < FAST.fresh_for_seconds for gpu in others)
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("code", "state"),
    [(15, GpuState.LOST), (16, GpuState.RESET_REQUIRED), (17, GpuState.ACCESS_DENIED), (999, GpuState.UNKNOWN)],
)
def test_a_sick_gpu_is_down_with_its_state_and_comes_back(
    fake: FakeNvml, watch: Watch, code: int, state: GpuState
) -> None:
    fake.set("gpu 3 field.74 2000000000")
    node = watch()
    fake.fault(gpu=3, code=code)
    node.until(lambda: not node.gpu(3).up)
    gpu = node.gpu(3)
    assert gpu.state is state
    assert gpu.detail.startswith("GPU 3: ")
    assert "\n" not in gpu.detail
    assert gpu.throttle_seconds_total[ThrottleReason.SW_POWER_CAP] == 2
    assert_only_identity_and_counters_are_left(gpu)
    assert_others_stay_fresh(node, sick=3, seconds=0.3)
    fake.clear()
    node.until(node.all_up)
    assert node.gpu(3).power_watts == 120


def test_a_gpu_lost_in_the_middle_of_a_cycle_shows_nothing_of_that_cycle(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetClockInfo", gpu=5, code=15, after=2)
    node.until(lambda: node.gpu(5).state is GpuState.LOST)
    assert_only_identity_and_counters_are_left(node.gpu(5))


def test_a_gpu_that_can_not_be_opened_at_the_start_is_down_without_a_uuid_until_it_can(
    fake: FakeNvml, watch: Watch
) -> None:
    fake.fault("nvmlDeviceGetHandleByIndex_v2", gpu=2, code=4)
    node = watch(ready=False)
    node.until(lambda: len(node.gpus()) == 8)
    assert (node.gpu(2).up, node.gpu(2).state, node.gpu(2).uuid) == (False, GpuState.ACCESS_DENIED, "")
    fake.clear()
    node.until(node.all_up)
    assert len(node.gpus()) == 8


def test_a_hung_gpu_is_down_its_readings_are_gone_and_it_recovers(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    hung_at = time.monotonic()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, hang=True)
    node.until(lambda: not node.gpu(3).up)
    assert time.monotonic() - hung_at < FAST.fresh_for_seconds + 1
    assert node.gpu(3).state is GpuState.HUNG
    node.until(lambda: "nvmlDeviceGetPowerUsage has not returned" in node.gpu(3).detail)
    assert_only_identity_and_counters_are_left(node.gpu(3))
    stuck = len(fake.calls(gpu=3))
    assert_others_stay_fresh(node, sick=3)
    assert len(fake.calls(gpu=3)) == stuck  # nothing queues behind the call
    fake.clear()
    node.until(node.all_up)


def test_asking_takes_no_time_while_a_call_hangs(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(gpu=3, hang=True)
    node.until(lambda: not node.gpu(3).up)
    began = time.monotonic()
    for _ in range(100):
        node.gpus()
        node.source.report(time.monotonic())
    assert (time.monotonic() - began) / 100 < 0.01


def test_a_hang_that_holds_the_drivers_lock_takes_every_gpu_and_gives_them_back(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, hang=True, hold=True)
    node.until(lambda: not any(gpu.up for gpu in node.gpus()))
    assert {gpu.state for gpu in node.gpus()} == {GpuState.HUNG}
    assert node.source.report(time.monotonic()).up is False
    fake.clear()
    node.until(node.all_up)


def test_a_gpu_with_a_call_of_a_second_slows_no_other_and_does_not_flap(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, sleep_ms=1000)
    node.until(lambda: not node.gpu(3).up)
    limit = time.monotonic() + 1.2
    while time.monotonic() < limit:
        assert node.gpu(3).state is GpuState.HUNG
        assert_others_stay_fresh(node, sick=3, seconds=0.2)


def test_a_slow_gpu_within_the_deadline_is_up(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, sleep_ms=250)
    reading = node.next_cycle(3)
    assert (reading.up, reading.power_watts) == (True, 120)
    duration = node.source.report(time.monotonic()).duration_seconds
    assert duration is not None
    assert duration >= 0.25


def test_a_loss_is_logged_once_and_so_is_the_return(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    with capture_logs() as logs:
        fake.fault(gpu=3, code=15)
        node.until(lambda: not node.gpu(3).up)
        assert_others_stay_fresh(node, sick=3, seconds=0.5)  # some more attempts at the lost one meanwhile
        fake.clear()
        node.until(node.all_up)
    said = [(entry["event"], entry["gpu"], entry["log_level"]) for entry in logs]
    assert said == [("a GPU is lost", "3", "warning"), ("a GPU is back", "3", "info")]
