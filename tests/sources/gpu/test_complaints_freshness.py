"""What users of other exporters complained of: values that stand still, and exporters that cost too much."""

import time
from collections.abc import Callable

import pytest
from pydantic import ValidationError

from pinchpoint.snapshot import GpuState
from pinchpoint.sources.gpu import GpuSettings
from pinchpoint.sources.gpu.rows import ROWS, Tier
from tests.fakes.nvml import FakeNvml, scenarios
from tests.sources.gpu.conftest import FAST, Opened, Watched

Watch = Callable[..., Watched]
Open = Callable[..., Opened]


def test_the_last_values_are_not_served_for_ever_and_their_time_is_told(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    before = node.gpu(3)
    scenarios.one_hung(fake)
    node.until(lambda: not node.gpu(3).up)
    gone = node.gpu(3)
    assert (gone.utilization_ratio, gone.power_watts, gone.memory_used_bytes) == (None, None, None)
    assert gone.last_success_at is not None
    assert before.last_success_at <= gone.last_success_at < gone.at + FAST.fresh_for_seconds
    time.sleep(0.2)
    assert node.gpu(3).last_success_at == gone.last_success_at


def test_each_gpu_has_a_heartbeat_of_its_own(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault(gpu=3, code=15)
    node.until(lambda: not node.gpu(3).up)
    stopped, beating = node.gpu(3).last_success_at, node.gpu(4).last_success_at
    assert node.next_cycle(4).last_success_at > beating
    assert node.gpu(3).last_success_at == stopped
    fake.clear()
    node.until(node.all_up)
    assert node.gpu(3).last_success_at > stopped


def test_when_every_gpu_freezes_every_one_is_down_and_none_needs_a_restart_to_return(
    fake: FakeNvml, watch: Watch
) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetUtilizationRates", hang=True)
    node.until(lambda: {gpu.state for gpu in node.gpus()} == {GpuState.HUNG})
    fake.clear()
    node.until(node.all_up)


def test_a_call_that_does_not_return_is_named_with_its_age(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, hang=True)

    def stuck() -> list[tuple[str, str]]:
        return [(call.gpu, call.call) for call in node.source.calls(time.monotonic()).stuck]

    node.until(lambda: stuck() == [("3", "nvmlDeviceGetPowerUsage")])
    (call,) = node.source.calls(time.monotonic()).stuck
    assert 1 < call.seconds < 5
    later = node.source.calls(time.monotonic() + 10).stuck  # by then every call in progress
    assert next(each for each in later if each.gpu == "3").seconds > call.seconds + 9
    fake.clear()
    node.until(lambda: not stuck())


def test_an_init_that_does_not_return_is_named_too(fake: FakeNvml, watch: Watch) -> None:
    scenarios.init_hung(fake)
    node = watch(ready=False)
    node.until(lambda: node.source.calls(time.monotonic()).stuck)
    (call,) = node.source.calls(time.monotonic()).stuck
    assert (call.gpu, call.call) == ("", "nvmlInit")


def test_one_slow_gpu_costs_the_others_no_reading_and_its_own_lost_ones_are_counted(
    fake: FakeNvml, watch: Watch
) -> None:
    node = watch()
    scenarios.one_slow(fake, ms=20)
    before = {gpu.gpu: gpu for gpu in node.gpus()}
    node.until(lambda: node.gpu(3).missed_cycles_total >= 10, seconds=20)
    after = {gpu.gpu: gpu for gpu in node.gpus()}
    assert after["3"].up
    for index in ("0", "2", "4", "7"):
        cycles = (after[index].at - before[index].at) / FAST.interval_seconds
        assert cycles > 10
        missed = after[index].missed_cycles_total - before[index].missed_cycles_total
        assert missed <= 0.6 * cycles  # the slow one loses four of five; the test's machine may be busy


def test_the_time_that_asking_costs_is_measured_by_call(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlDeviceGetPowerUsage", gpu=3, sleep_ms=20)
    fake.set("gpu * latency_us 250")
    node = watch()
    for _ in range(3):
        node.next_cycle(3)
    told = node.source.calls(time.monotonic())
    costs = {call.call: call for call in told.calls}
    assert {"nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetName"} < costs.keys()
    power = costs["nvmlDeviceGetPowerUsage"]
    assert 3 * 0.02 <= power.seconds_total < 10
    assert abs(power.calls_total - len(fake.calls("nvmlDeviceGetPowerUsage"))) <= 16  # some are under way
    batches = costs["nvmlDeviceGetFieldValues"].calls_total
    assert told.field_seconds_total["82"] == pytest.approx(250e-6 * batches, rel=0.5)
    assert costs["nvmlDeviceGetName"].calls_total == 8


def test_the_cost_counters_go_on_when_nvml_starts_anew(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    before = {call.call: call.calls_total for call in node.source.calls(time.monotonic()).calls}
    fake.fault(code=9)
    node.until(lambda: not node.gpus())
    fake.clear()
    node.until(node.all_up)
    after = {call.call: call.calls_total for call in node.source.calls(time.monotonic()).calls}
    assert all(after[call] >= total for call, total in before.items())
    assert after["nvmlShutdown"] >= 1


def test_nothing_is_asked_that_fills_no_field_and_nothing_that_blocks(fake: FakeNvml, opened: Open) -> None:
    gpu = opened()
    gpu.read()
    gpu.read()  # a profile lies between two samples, and their memory is asked for once
    before = len(fake.calls())
    for _ in range(10):
        gpu.read()
    fast = {call for row in ROWS.values() if row.tier is Tier.FAST for call in row.calls}
    asked = [call for _, call, _ in fake.calls()[before:]]
    known = fast | {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetFieldValues"}
    assert set(asked) <= known | {"nvmlGpmSampleGet", "nvmlGpmMetricsGet"}
    assert len(asked) / 10 <= 18
    assert "nvmlDeviceGetPcieThroughput" not in asked


def test_the_call_that_blocks_for_20_ms_is_made_only_when_asked_for(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 pcie_kbps.0 1500", "gpu 0 pcie_kbps.1 2500", "gpu 0 pcie_sample_ms 1")
    reading = opened(settings=GpuSettings(pcie_throughput=True)).read()
    assert (reading.pcie_transmit_bytes_per_second, reading.pcie_receive_bytes_per_second) == (1.5e6, 2.5e6)
    assert len(fake.calls("nvmlDeviceGetPcieThroughput")) == 2


@pytest.mark.parametrize("interval", [0, 0.003, -1, float("nan"), float("inf")])
def test_an_interval_that_would_burn_a_core_is_refused(interval: float) -> None:
    with pytest.raises(ValidationError, match="interval_seconds"):
        GpuSettings(interval_seconds=interval)


def test_what_failed_for_good_is_not_looked_up_again_and_again(fake: FakeNvml, opened: Open) -> None:
    scenarios.vgpu_guest(fake)
    gpu = opened()
    gpu.read()
    before = fake.calls()
    for _ in range(50):
        gpu.read()
    again = {call for _, call, _ in fake.calls()[len(before) :]}
    absent = {"nvmlDeviceGetPowerUsage", "nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrPcieLinkGeneration"}
    assert absent <= {call for _, call, _ in before}
    assert not absent & again
