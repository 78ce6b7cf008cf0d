"""What is asked how often, and how long an answer holds."""

from collections.abc import Callable

import pytest

from pinchpoint.sources.gpu import GpuSettings
from pinchpoint.sources.gpu.pci import numa_node
from tests.fakes.nvml import FakeNvml
from tests.sources.gpu.conftest import Opened

Open = Callable[..., Opened]


def test_what_changes_rarely_is_asked_rarely_and_holds_in_between(fake: FakeNvml, opened: Open) -> None:
    gpu = opened()
    assert gpu.read().ecc_errors_total == {"correctable": 0, "uncorrectable": 0}
    fake.set("gpu 0 ecc.0.0 7", "gpu 0 persistence 0", "gpu 0 util 50")
    batches = len(fake.calls("nvmlDeviceGetFieldValues"))
    held = [gpu.read() for _ in range(14)]
    assert {reading.ecc_errors_total["correctable"] for reading in held} == {0}
    assert {reading.utilization_ratio for reading in held} == {0.5}
    assert len(fake.calls("nvmlDeviceGetFieldValues")) - batches == 14  # one batch a cycle
    assert len(fake.calls("nvmlDeviceGetPersistenceMode")) == 1
    new = gpu.read()
    assert (new.ecc_errors_total["correctable"], new.persistence_mode) == (7, False)


def test_limits_and_maxima_are_asked_once_a_minute(fake: FakeNvml, opened: Open) -> None:
    gpu = opened()
    for _ in range(60):
        gpu.read()
    assert len(fake.calls("nvmlDeviceGetPowerManagementDefaultLimit")) == 1
    fake.set("gpu 0 limit_default 600000")
    assert gpu.read().power_limit_default_watts == 600
    assert gpu.read().clock_max_hertz["sm"] == 1.98e9


def test_the_tiers_can_be_set(fake: FakeNvml, opened: Open) -> None:
    gpu = opened(settings=GpuSettings(medium_interval_seconds=3, slow_interval_seconds=3))
    gpu.read()
    fake.set("gpu 0 ecc.0.0 7", "gpu 0 limit_default 600000")
    readings = [gpu.read() for _ in range(3)]
    assert [reading.ecc_errors_total["correctable"] for reading in readings] == [0, 0, 7]
    assert readings[-1].power_limit_default_watts == 600


def test_a_value_that_its_tier_no_longer_gives_is_withdrawn(fake: FakeNvml, opened: Open) -> None:
    gpu = opened()
    assert gpu.read().recovery_action == "none"
    fake.set("gpu 0 recovery_action !19")
    assert gpu.read(14).recovery_action == "none"
    gone = gpu.read()
    assert (gone.recovery_action, gone.unavailable["recovery_action"]) == (None, "driver_error")
    fake.set("gpu 0 recovery_action 2")
    assert gpu.read(15).recovery_action == "node_reboot"


def test_a_pause_of_hours_leaves_nothing_old_behind(fake: FakeNvml, opened: Open) -> None:
    """A laptop that slept, a process that was stopped: everything is due at once."""
    gpu = opened()
    gpu.read()
    fake.set("gpu 0 ecc.0.0 7", "gpu 0 limit_default 600000")
    late = gpu.read(after=7200)
    assert (late.ecc_errors_total["correctable"], late.power_limit_default_watts) == (7, 600)


def test_a_card_that_is_split_meanwhile_is_asked_everything_anew(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 limit_default -1", "gpu 0 util 80")
    gpu = opened()
    assert gpu.read().power_limit_default_watts is None
    fake.set("gpu 0 mig 1", "gpu 0 limit_default 700000")
    split = gpu.read(15)
    assert (split.mig_mode, split.utilization_ratio) == (True, None)
    assert gpu.read().power_limit_default_watts == 700


def test_a_refusal_is_asked_again_after_an_hour(fake: FakeNvml, opened: Open) -> None:
    fake.set("gpu 0 power -1")
    gpu = opened()
    gpu.read()
    fake.set("gpu 0 power 300000")
    assert gpu.read(after=3000).power_watts is None
    assert gpu.read(after=601).power_watts == 300


def test_a_gpu_knows_its_numa_node_from_the_bus(opened: Open, tmp_path) -> None:
    place = tmp_path / "bus/pci/devices/0000:10:00.0"
    place.mkdir(parents=True)
    (place / "numa_node").write_text("1\n")
    assert opened(sysfs=tmp_path).read().numa_node == 1
    (place / "numa_node").write_text("-1\n")
    assert opened(sysfs=tmp_path).read().numa_node is None
    assert opened().read().numa_node is None


@pytest.mark.parametrize(
    ("key", "raw", "field", "told"),
    [
        ("architecture", 10, "architecture", "blackwell"),
        ("architecture", 16, "architecture", "code_16"),
        ("architecture", 2**32 - 1, "architecture", None),
        ("virtualization", 1, "virtualization", "passthrough"),
        ("recovery_action", 4, "recovery_action", "drain_and_reset"),
        ("recovery_action", 9, "recovery_action", "code_9"),
        ("ecc_mode", 0, "ecc_mode", False),
        ("persistence", 7, "persistence_mode", None),
        ("field.170", 10, "c2c_links", 10),
    ],
)
def test_a_code_has_a_name_and_a_newer_one_is_told_as_it_is(
    fake: FakeNvml, opened: Open, key: str, raw: int, field: str, told: object
) -> None:
    fake.set(f"gpu 0 {key} {raw}")
    assert getattr(opened().read(), field) == told


def test_a_bus_domain_of_more_than_four_digits_is_no_other_domain(tmp_path) -> None:
    for domain, node in (("0000", "0"), ("10000", "1")):
        place = tmp_path / f"bus/pci/devices/{domain}:c1:00.0"
        place.mkdir(parents=True)
        (place / "numa_node").write_text(node)
    assert numa_node("00010000:C1:00.0", tmp_path) == 1
    assert numa_node("00000000:C1:00.0", tmp_path) == 0
