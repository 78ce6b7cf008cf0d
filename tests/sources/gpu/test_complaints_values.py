"""What users of other exporters complained of: numbers that were not true."""

from collections.abc import Callable

import pytest

from pinchpoint.snapshot import Reason
from tests.fakes.nvml import FakeNvml, scenarios
from tests.sources.gpu.conftest import Opened

Open = Callable[..., Opened]


def test_a_card_without_memory_of_its_own_has_no_framebuffer_and_says_that_it_shares(
    fake: FakeNvml, opened: Open
) -> None:
    scenarios.gb10_unified(fake)
    reading = opened().read()
    assert (reading.up, reading.name, reading.memory_model) == (True, "NVIDIA GB10", "unified")
    assert (reading.memory_total_bytes, reading.memory_used_bytes, reading.memory_reserved_bytes) == (None,) * 3
    assert reading.unavailable["memory_used_bytes"] == Reason.NOT_SUPPORTED
    assert reading.utilization_ratio is not None


def test_what_such_a_card_can_not_tell_is_absent_and_not_nought(fake: FakeNvml, opened: Open) -> None:
    scenarios.gb10_unified(fake)
    reading = opened().read()
    assert "memory" not in reading.temperature_celsius
    assert reading.power_limit_watts is None
    assert reading.remapped_rows == {}
    assert reading.unavailable["temperature_celsius.memory"] == Reason.NOT_SUPPORTED
    assert not reading.invalid_samples_total


def test_a_card_that_fails_once_to_tell_its_memory_is_not_called_unified(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 mem_total !19")
    reading = opened().read()
    assert (reading.memory_model, reading.unavailable["memory_total_bytes"]) == (None, Reason.DRIVER_ERROR)


def test_pcie_traffic_is_a_rate_over_the_wrap_of_its_counter(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.counter_wrap_and_reset(fake)
    fake.set("gpu 0 pcie_gen_max 1", "gpu 0 pcie_width_max 1")  # 0.25 GB/s: it can't wrap twice in 2 s
    gpu = opened()
    assert gpu.read().unavailable["pcie_receive_bytes_per_second"] == Reason.STARTING
    rates = []
    for _ in range(3):
        node.step()
        rates.append(gpu.read(after=2).pcie_receive_bytes_per_second)
    assert rates == [node.PCIE_STEP / 2] * 3


def test_a_counter_that_could_wrap_unseen_gives_no_rate_at_all(fake: FakeNvml, opened: Open) -> None:
    """32 bits of bytes are full after 68 ms of a generation 5 link: a second later nobody knows how often."""
    node = scenarios.counter_wrap_and_reset(fake)
    fake.set("gpu * gpm 0")  # profiling would tell
    gpu = opened()
    gpu.read()
    node.step()
    reading = gpu.read()
    assert reading.pcie_receive_bytes_per_second is None
    assert reading.unavailable["pcie_transmit_bytes_per_second"] == Reason.NOT_SUPPORTED


def test_replays_go_on_over_the_wrap_and_a_reset_is_passed_on(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.counter_wrap_and_reset(fake)
    gpu = opened()
    totals = [gpu.read().pcie_replay_total]
    for _ in range(5):
        node.step()
        totals.append(gpu.read(after=15).pcie_replay_total)
    top = 2**32
    assert totals == [top - 1, top, top + 1, top + 2, 0, 1]


def test_blanks_are_dropped_never_clamped_and_counted(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 util 808334905", "gpu 0 energy 9223372036854775794", "gpu 0 power 4294967295")
    fake.set("gpu 0 pcie_gen 4294967295", "gpu 0 ecc.0.0 18446744073709551615", "gpu 0 rows.pending 4294967295")
    gpu = opened()
    gpu.read()
    reading = gpu.read()
    assert (reading.utilization_ratio, reading.energy_joules_total, reading.power_watts) == (None, None, None)
    assert reading.pcie_link_generation is None
    assert reading.ecc_errors_total.keys() == {"uncorrectable"}
    assert reading.invalid_samples_total == {
        "utilization_ratio": 2,
        "energy_joules_total": 2,
        "power_watts": 2,
        "pcie_link_generation": 2,
        "ecc_errors_total.correctable": 1,  # asked once so far
        "remapped_rows.pending": 1,
    }
    fake.set("gpu 0 util 50")
    later = gpu.read()
    assert (later.utilization_ratio, later.invalid_samples_total["utilization_ratio"]) == (0.5, 2)


@pytest.mark.parametrize(("used", "reserved"), [(0, 629145600), (120_000_000_000, 629145600), (7, 0)])
def test_used_and_free_and_reserved_make_the_total(fake: FakeNvml, opened: Open, used: int, reserved: int) -> None:
    fake.set(f"gpu 0 mem_used {used}", f"gpu 0 mem_reserved {reserved}")
    reading = opened().read()
    assert (reading.memory_used_bytes, reading.memory_reserved_bytes) == (used, reserved)
    assert reading.memory_total_bytes == 150754820096
    assert reading.memory_model == "framebuffer"


def test_a_driver_that_counts_what_it_reserves_as_used_is_found_out(fake: FakeNvml, opened: Open) -> None:
    """Used + reserved beyond the total: free wraps round, and no part of it can be trusted."""
    fake.set("gpu 0 mem_used 150754820096")
    reading = opened().read()
    assert (reading.memory_used_bytes, reading.memory_total_bytes) == (None, None)
    assert reading.unavailable["memory_used_bytes"] == Reason.INVALID
    assert reading.invalid_samples_total["memory_used_bytes"] == 1


def test_an_older_driver_tells_its_memory_by_the_older_call_and_only_by_that(fake: FakeNvml, opened: Open) -> None:
    scenarios.t4_old_driver(fake)
    fake.set("gpu 0 mem_used 1000000000", "gpu 0 mem_reserved 300000000")
    gpu = opened()
    reading = gpu.read()
    assert (reading.memory_total_bytes, reading.memory_used_bytes) == (15843721216, 1300000000)
    assert reading.unavailable["memory_reserved_bytes"] == Reason.NOT_SUPPORTED
    assert reading.memory_model == "framebuffer"
    gpu.device._nvml.forget()  # as after an hour
    fake.unset("missing nvmlDeviceGetMemoryInfo_v2")
    assert gpu.read().memory_used_bytes == 1300000000  # two ways of counting in one series would be a jump


def test_a_symbol_that_is_missing_costs_its_metric_only_and_one_look(fake: FakeNvml, opened: Open) -> None:
    scenarios.t4_old_driver(fake)
    fake.set("gpu 0 temp 51", "gpu 0 reasons 4")
    gpu = opened()
    readings = [gpu.read() for _ in range(5)]
    last = readings[-1]
    assert (last.name, last.architecture, last.driver) == ("Tesla T4", "turing", "470.256.02")
    assert last.temperature_celsius == {"gpu": 51}
    assert last.throttle_active["sw_power_cap"] == 1
    assert last.retired_pages == {"single_bit": 0, "double_bit": 0, "pending": 0}
    assert last.recovery_action is None
    assert last.unavailable["recovery_action"] == Reason.NOT_SUPPORTED
    assert not last.invalid_samples_total  # the memory temperature of 0 means that there is none
    asked = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMemoryInfo_v2")
    assert [len(fake.calls(name)) for name in asked] == [1, 1, 1]


def test_a_driver_without_field_values_still_tells_the_rest(fake: FakeNvml, opened: Open) -> None:
    fake.miss("nvmlDeviceGetFieldValues")
    fake.set("gpu 0 ecc.0.0 3", "gpu 0 rows.failure 1", "gpu 0 pcie_replay 5")
    reading = opened().read()
    assert reading.ecc_errors_total == {"correctable": 3, "uncorrectable": 0}
    assert reading.remapped_rows == {"correctable": 0, "uncorrectable": 0, "pending": 0, "failure": 1}
    assert reading.pcie_replay_total == 5
    assert reading.power_watts == 120


@pytest.mark.parametrize("answer", ["0", "-1", "87"])
def test_a_split_gpu_has_no_utilisation_rather_than_none_at_work(fake: FakeNvml, opened: Open, answer: str) -> None:
    scenarios.mig_7x1g(fake)
    fake.set(f"gpu * util {answer}")
    split = opened(0).read()
    assert (split.mig_mode, split.utilization_ratio, split.memory_controller_utilization_ratio) == (True, None, None)
    assert split.unavailable["utilization_ratio"] == Reason.NOT_SUPPORTED
    assert split.power_watts == 71  # power and temperature are the card's
    assert fake.calls("nvmlDeviceGetUtilizationRates", gpu=0) == []
    assert opened(1).read().mig_mode is False


def test_a_virtual_machine_is_not_asked_what_would_fill_its_kernel_log(fake: FakeNvml, opened: Open) -> None:
    scenarios.vgpu_guest(fake)
    reading = opened().read()
    assert (reading.virtualization, reading.remapped_rows) == ("vgpu", {})
    assert reading.unavailable["remapped_rows.pending"] == Reason.NOT_SUPPORTED
    assert fake.calls("nvmlDeviceGetRemappedRows") == []
    assert fake.calls("nvmlDeviceGetRowRemapperHistogram") == []
