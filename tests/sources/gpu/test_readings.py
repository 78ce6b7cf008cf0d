"""What a healthy GPU says, and what one says that can't say everything."""

from collections.abc import Callable

import pytest

from pinchpoint.snapshot import GpuReading, Reason, ThrottleReason
from pinchpoint.sources.gpu.gpm import METRICS
from pinchpoint.sources.gpu.rows import ROWS, Tier
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import Watched

Watch = Callable[..., Watched]

# What the fake's H200 does not have: pages to retire, links to the CPU.
NOT_A_HOPPERS = ("c2c_links", "retired_pages.single_bit", "retired_pages.double_bit", "retired_pages.pending")


def unavailable(gpu: GpuReading) -> dict[str, str]:
    """What is missing but for what the first readings can't have: METRICS lie between two."""
    return {field: reason for field, reason in gpu.unavailable.items() if field not in (*NOT_A_HOPPERS, *METRICS)}


def test_eight_healthy_gpus_say_everything_in_base_units(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 3 util 87", "gpu 3 mem_util 41", "gpu 3 mem_used 120000000000", "gpu 3 temp 71", "gpu 3 field.82 88")
    fake.set("gpu 3 power 690500", "gpu 3 energy 123456789", "gpu 3 clock.1 1755", "gpu 3 reasons 4")
    fake.set("gpu 3 gpm.2 62", "gpu 3 field.74 51500000000", "driver 575.57.08", "nvml 12.575.57.08")
    fake.set(
        "gpu 3 pcie_gen 4", "gpu 3 pcie_replay 3", "gpu 3 ecc.0.0 12", "gpu 3 ecc.1.0 1", "gpu 3 rows.correctable 2"
    )
    fake.set("gpu 3 rows.uncorrectable 1", "gpu 3 rows.pending 1", "gpu 3 pcie_width_max 2")
    node = watch()
    node.until(lambda: node.gpu(3).sm_active_ratio is not None)
    gpu = node.next_cycle(3)
    assert [link.link for link in gpu.nvlinks] == [str(link) for link in range(18)]
    others = dict.fromkeys(set(ThrottleReason) - {ThrottleReason.SW_POWER_CAP}, 0.0)
    assert gpu == GpuReading(
        gpu="3",
        uuid="GPU-fa000003-0000-4000-8000-000000000003",
        at=gpu.at,
        name="NVIDIA H200",
        pci_bus_id="00000000:13:00.0",
        minor_number="3",
        driver="575.57.08",
        nvml="12.575.57.08",
        architecture="hopper",
        virtualization="none",
        memory_model="framebuffer",
        persistence_mode=True,
        ecc_mode=True,
        mig_mode=False,
        last_success_at=gpu.at,
        missed_cycles_total=gpu.missed_cycles_total,
        recovery_action="none",
        utilization_ratio=0.87,
        memory_controller_utilization_ratio=0.41,
        memory_total_bytes=150754820096,
        memory_used_bytes=120000000000,
        memory_reserved_bytes=629145600,
        power_watts=pytest.approx(690.5),
        power_limit_watts=700,
        power_limit_default_watts=700,
        pcie_link_generation=4,
        pcie_link_generation_max=5,
        pcie_link_width=16,
        pcie_link_width_max=2,
        nvlinks=gpu.nvlinks,
        nvlink_receive_bytes_total=0,
        nvlink_transmit_bytes_total=0,
        sm_active_ratio=0.62,
        process_ids=(),
        profile_stuck=False,
        **dict.fromkeys(METRICS.keys() - {"sm_active_ratio"}, 0.0),
        pcie_replay_total=3,
        ecc_errors_total={"correctable": 12, "uncorrectable": 1},
        remapped_rows={"correctable": 2, "uncorrectable": 1, "pending": 1, "failure": 0},
        energy_joules_total=pytest.approx(123456.789),
        temperature_celsius={"gpu": 71, "memory": 88},
        clock_hertz={"graphics": 1.98e9, "sm": 1.755e9, "memory": 3.201e9, "video": 1.545e9},
        clock_max_hertz={"graphics": 1.98e9, "sm": 1.98e9, "memory": 3.201e9, "video": 1.545e9},
        throttle_active={**others, ThrottleReason.SW_POWER_CAP: 1.0},
        throttle_seconds_total={**others, ThrottleReason.SW_POWER_CAP: pytest.approx(51.5)},
        unavailable=dict.fromkeys(NOT_A_HOPPERS, Reason.NOT_SUPPORTED),
    )
    assert [(other.gpu, other.utilization_ratio) for other in node.gpus()] == [
        (str(index), 0.87 if index == 3 else 0.0) for index in range(8)
    ]
    assert node.absences() == ()
    assert (node.source.gpus_visible, node.source.gpus_expected) == (8, None)


def test_a_reading_is_the_same_object_until_there_is_a_newer_one(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.set("gpu 0 util 55")
    gpu = node.next_cycle(0)
    assert gpu.utilization_ratio == 0.55
    assert node.gpu(0) is gpu


def test_what_a_gpu_does_not_support_is_absent_named_and_not_asked_for_again(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 2 power -1", "gpu 2 mem_total -1", "gpu 2 util -1", "gpu 2 field.82 -1", "gpu 2 reasons -1")
    node = watch()
    for _ in range(3):
        gpu = node.next_cycle(2)
    assert gpu.up
    assert gpu.power_watts is None
    assert gpu.memory_total_bytes is None
    assert gpu.utilization_ratio is None
    assert gpu.throttle_active == {}
    assert gpu.temperature_celsius == {"gpu": 40}
    assert unavailable(gpu) == dict.fromkeys(
        (
            "power_watts",
            "memory_total_bytes",
            "memory_used_bytes",
            "memory_reserved_bytes",
            "utilization_ratio",
            "memory_controller_utilization_ratio",
            "temperature_celsius.memory",
            "throttle_active",
        ),
        "not_supported",
    )
    assert len(fake.calls("nvmlDeviceGetPowerUsage", gpu=2)) == 1
    assert len(fake.calls("nvmlDeviceGetPowerUsage", gpu=1)) > 3
    assert unavailable(node.gpu(1)) == {}


def test_an_older_driver_is_asked_by_its_older_names(fake: FakeNvml, watch: Watch) -> None:
    newer = ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetCurrentClocksEventReasons")
    for function in newer:
        fake.fault(function, code=13)
    fake.set("gpu * temp 63", "gpu * reasons 64")
    node = watch()
    for _ in range(3):
        gpu = node.next_cycle(0)
    assert gpu.temperature_celsius["gpu"] == 63
    assert gpu.throttle_active[ThrottleReason.HW_THERMAL_SLOWDOWN] == 1
    assert [len(fake.calls(function, gpu=0)) for function in newer] == [1, 1]


def test_blanks_are_dropped_and_never_clamped(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 4 util 808334905", "gpu 4 power 4294967295", "gpu 4 energy 9223372036854775794", "gpu 4 temp 0")
    fake.set("gpu 4 field.82 0", "gpu 4 clock.1 4294967295", "gpu 4 field.74 18446744073709551615", "gpu 4 limit 0")
    fake.set("gpu 4 mem_used 18446744073709551615", "gpu 4 clock_max.3 0")
    node = watch()
    gpu = node.next_cycle(4)
    assert gpu.up
    assert (gpu.utilization_ratio, gpu.power_watts, gpu.power_limit_watts, gpu.energy_joules_total) == (None,) * 4
    assert (gpu.memory_used_bytes, gpu.temperature_celsius) == (None, {})
    assert gpu.clock_hertz.keys() == {"graphics", "memory", "video"}
    assert gpu.clock_max_hertz.keys() == {"graphics", "sm", "memory"}
    assert gpu.throttle_seconds_total[ThrottleReason.SW_POWER_CAP] == 0  # from samples then
    assert gpu.memory_controller_utilization_ratio == 0
    assert set(unavailable(gpu).values()) == {Reason.INVALID, Reason.NOT_SUPPORTED}
    assert "clock_hertz.sm" in gpu.unavailable


def test_a_call_that_fails_once_is_absent_once(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    fake.fault("nvmlDeviceGetPowerUsage", gpu=1, code=19)
    gpu = node.next_cycle(1)
    assert (gpu.up, gpu.power_watts, unavailable(gpu)) == (True, None, {"power_watts": Reason.DRIVER_ERROR})
    fake.clear()
    assert node.next_cycle(1).power_watts == 120


def test_a_value_that_may_not_be_read_is_absent_with_that_reason(fake: FakeNvml, watch: Watch) -> None:
    fake.fault("nvmlDeviceGetEnforcedPowerLimit", gpu=1, code=4)
    gpu = watch().next_cycle(1)
    assert unavailable(gpu) == {"power_limit_watts": Reason.ACCESS_DENIED}


def test_a_cycle_makes_no_call_that_fills_no_field(fake: FakeNvml, watch: Watch) -> None:
    node = watch()
    reader = fake.calls("nvmlDeviceGetPowerUsage", gpu=0)[0][0]
    before = len(fake.calls(gpu=0))
    cycles = {node.next_cycle(0).at for _ in range(3)}
    calls = sum(thread == reader for thread, _, _ in fake.calls(gpu=0)[before:])
    assert calls <= (sum(row.tier is Tier.FAST for row in ROWS.values()) + 5) * (len(cycles) + 1)


def test_throttled_time_without_a_counter_of_the_drivers_is_summed_from_samples(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 6 reasons 8", "gpu 6 field.270 -1")
    node = watch()
    seconds = [node.next_cycle(6).throttle_seconds_total[ThrottleReason.HW_SLOWDOWN] for _ in range(4)]
    assert seconds == sorted(seconds)
    assert 0.1 < seconds[-1] - seconds[0] < 2
    assert node.gpu(6).throttle_seconds_total[ThrottleReason.HW_THERMAL_SLOWDOWN] == 0


def test_a_name_that_is_no_text_is_absent(fake: FakeNvml, watch: Watch) -> None:
    fake.set("gpu 1 name NVIDIA \udcff\udcfe")
    gpu = watch().gpu(1)
    assert (gpu.up, gpu.name) == (True, None)
