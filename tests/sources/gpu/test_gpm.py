"""Profiling one GPU through the C fake, in simulated time but for the 100 ms that the library itself measures."""

import time
from collections.abc import Callable, Iterator

import pytest

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.gpm import METRICS, STUCK_SECONDS, Profile
from tests.fakes.nvml import FakeNvml
from tests.fakes.nvml.scenarios import h100x8_nvswitch, l40s_x4_two_sockets, mig_7x1g
from tests.sources.gpu.conftest import Opened

BUSY = {"2": 71.5, "3": 40, "5": 33, "10": 62, "20": 10, "21": 20, "60": 300, "61": 400}


class Profiled:
    """A profile whose clock is wound; ``gpm_shortest_ms 0`` makes the library follow."""

    def __init__(self, one: Opened, instance: int | None = None) -> None:
        self.one = one
        self.profile = Profile(one.device._nvml, one.site.clock, instance)

    def after(self, seconds: float, utilization: float | Reason = 0.9) -> dict[str, float | Reason]:
        self.one.now += seconds
        return self.profile.measure(utilization)


@pytest.fixture
def profiled(fake: FakeNvml, opened: Callable[..., Opened]) -> Iterator[Callable[..., Profiled]]:
    made: list[Profiled] = []

    def start(instance: int | None = None) -> Profiled:
        fake.set("gpm_shortest_ms 0", *(f"gpu * gpm.{metric} {value}" for metric, value in BUSY.items()))
        made.append(Profiled(opened(), instance))
        return made[-1]

    yield start
    fake.clear()
    for each in made:
        each.profile.close()
    assert fake.count("samples") == 0


def test_a_profile_is_what_happened_between_two_readings(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    assert set(node.after(0).values()) == {Reason.STARTING}
    assert node.after(1) == {
        "sm_active_ratio": 0.715,
        "sm_occupancy_ratio": 0.4,
        "tensor_active_ratio": 0.33,
        "dram_active_ratio": 0.62,
        "pcie_transmit_bytes_per_second": 10 * 2**20,
        "pcie_receive_bytes_per_second": 20 * 2**20,
        "nvlink_receive_bytes_per_second": 300 * 2**20,
        "nvlink_transmit_bytes_per_second": 400 * 2**20,
    }
    assert node.profile.stuck is False


def test_samples_are_never_closer_than_the_library_allows_and_nobody_sleeps(
    fake: FakeNvml, profiled: Callable[..., Profiled]
) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    node.after(0)
    measured = node.after(1)
    fake.set("gpu * gpm.2 12")
    assert node.after(0.06) == measured  # too soon: what is known is held
    assert node.after(0.06)["sm_active_ratio"] == 0.12


def test_the_library_s_own_clock_agrees(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    fake.set("gpm_shortest_ms 100")
    node.after(0)
    time.sleep(0.11)
    assert node.after(0.11)["sm_active_ratio"] == 0.715


def test_a_card_before_hopper_has_no_profile_and_is_asked_once(
    fake: FakeNvml, profiled: Callable[..., Profiled]
) -> None:
    l40s_x4_two_sockets(fake)
    node = profiled()
    assert set(node.after(1).values()) == {Reason.NOT_SUPPORTED}
    node.after(1)
    assert node.profile.stuck is None
    assert len(fake.calls("nvmlGpmQueryDeviceSupport")) == 1
    node.after(3600)
    assert len(fake.calls("nvmlGpmQueryDeviceSupport")) == 2


def test_a_library_without_gpm_has_no_profile(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    fake.miss("nvmlGpmQueryDeviceSupport")
    assert set(profiled().after(1).values()) == {Reason.NOT_SUPPORTED}


def test_one_metric_that_fails_takes_no_other_along(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    fake.set("gpu 0 gpm.10 -1", "gpu 0 gpm.5 nan", "gpu 0 gpm.3 4294967295")
    node.after(0)
    answers = node.after(1)
    assert answers["dram_active_ratio"] is Reason.NOT_SUPPORTED
    assert answers["tensor_active_ratio"] is Reason.INVALID
    assert answers["sm_occupancy_ratio"] is Reason.INVALID
    assert answers["sm_active_ratio"] == 0.715


def test_a_sample_that_fails_is_no_base_for_the_next(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    node.after(0)
    node.after(1)
    fake.fault("nvmlGpmSampleGet", code=999)
    assert set(node.after(1).values()) == {Reason.DRIVER_ERROR}
    fake.clear()
    assert node.after(1)["sm_active_ratio"] == 0.715
    assert fake.count("samples") == 2


def test_busy_without_a_busy_sm_for_long_is_flagged_and_the_zeros_are_withdrawn(
    fake: FakeNvml, profiled: Callable[..., Profiled]
) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    node.after(0)
    assert node.after(1)["sm_active_ratio"] == 0.715
    fake.set("gpu * gpm.2 0")
    assert node.after(1)["sm_active_ratio"] == 0  # a moment is no proof: NVML's utilisation lags by a second
    assert node.profile.stuck is False
    frees = len(fake.calls("nvmlGpmSampleFree"))
    node.after(STUCK_SECONDS)
    assert node.profile.stuck is True
    assert len(fake.calls("nvmlGpmSampleFree")) == frees + 2  # and a new start is made
    assert set(node.after(1).values()) == {Reason.STARTING}
    assert set(node.after(1).values()) == {Reason.INVALID}
    fake.set("gpu * gpm.2 50")
    assert node.after(1)["sm_active_ratio"] == 0.5
    assert node.profile.stuck is False


def test_idle_is_not_stuck(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    h100x8_nvswitch(fake)
    node = profiled()
    fake.set("gpu * gpm.2 0")
    node.after(0)
    for utilization in (0.0, Reason.NOT_SUPPORTED, 0.3, 0.0, 0.3):  # work comes and goes, or can't be told
        assert node.after(STUCK_SECONDS - 1, utilization)["sm_active_ratio"] == 0
    assert node.profile.stuck is False


def test_a_gpu_instance_has_a_profile_of_its_own(fake: FakeNvml, profiled: Callable[..., Profiled]) -> None:
    mig_7x1g(fake)
    node = profiled(instance=9)
    fake.set("gpu 0 mig.2.gpm.2 25")  # slot 2 holds instance 9
    node.after(0)
    answers = node.after(1)
    assert answers["sm_active_ratio"] == 0.25
    assert set(METRICS) == set(answers)


def test_a_reading_holds_the_profile(fake: FakeNvml, opened: Callable[..., Opened]) -> None:
    h100x8_nvswitch(fake)
    fake.set("gpm_shortest_ms 0", "gpu 0 util 80", "gpu 0 gpm.2 60", "gpu 0 gpm.20 5")
    one = opened()
    first = one.read()
    assert (first.sm_active_ratio, first.unavailable["sm_active_ratio"]) == (None, "starting")
    gpu = one.read()
    assert (gpu.sm_active_ratio, gpu.pcie_transmit_bytes_per_second, gpu.profile_stuck) == (0.6, 5 * 2**20, False)
    one.device.close()
    assert fake.count("samples") == 0


def test_pcie_rates_come_from_the_counters_where_there_is_no_profile(
    fake: FakeNvml, opened: Callable[..., Opened]
) -> None:
    l40s_x4_two_sockets(fake)
    fake.set("gpu 0 pcie_gen_max 1", "gpu 0 pcie_width_max 4", "gpu 0 field.198 1000")
    one = opened()
    one.read()
    fake.set("gpu 0 field.198 6000")
    gpu = one.read(2)
    assert gpu.pcie_receive_bytes_per_second == 2500
    assert gpu.unavailable["profile_stuck"] == "not_supported"
