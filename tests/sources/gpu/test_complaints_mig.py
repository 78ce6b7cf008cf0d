"""A GPU in pieces: each test is a complaint about how another exporter shows one."""

from collections.abc import Callable

import pytest

from pinchpoint.snapshot import MigInstance, Reason
from tests.fakes.nvml import FakeNvml, scenarios
from tests.sources.gpu.conftest import FAST, Opened, Watched

Open = Callable[..., Opened]
Watch = Callable[..., Watched]
MEDIUM = 15.0
GIBI = 1033 << 20  # a "GB" of a profile's name, as the cards have it


def test_each_instance_is_told_with_its_place_profile_and_memory(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    fake.set("gpm_shortest_ms 0", "gpu 0 mig.2.mem_used 5000000000", "gpu 0 mig.2.gpm.2 71.5", "gpu 0 mig.2.gpm.10 33")
    one = opened(0)
    assert [instance.sm_active_ratio for instance in one.read().mig_instances] == [None] * 7  # it takes two samples
    instances = one.read(MEDIUM).mig_instances
    assert len(instances) == 7
    assert instances[2] == MigInstance(
        uuid="MIG-00000002-0009-5000-8000-000000000001",
        gpu_instance="9",
        compute_instance="0",
        index=2,
        profile="1g.10gb",
        memory_total_bytes=10 * GIBI,
        memory_used_bytes=5000000000,
        sm_active_ratio=0.715,
        tensor_active_ratio=0,
        dram_active_ratio=0.33,
    )


def test_a_whole_card_beside_it_is_asked_for_no_instance(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    assert opened(1).read().mig_instances == ()
    assert [call for call in fake.calls(gpu=1) if "Mig" in call[1]] == [
        (fake.calls(gpu=1)[0][0], "nvmlDeviceGetMigMode", 1)
    ]


def test_what_is_the_cards_stays_the_cards(fake: FakeNvml, opened: Open) -> None:
    """Power, temperature and clocks copied to each instance would be counted seven times."""
    scenarios.mig_7x1g(fake)
    reading = opened(0).read()
    assert (reading.utilization_ratio, reading.power_watts, reading.temperature_celsius["gpu"]) == (None, 71, 31)
    assert not {"power_watts", "temperature_celsius", "utilization_ratio"} & set(MigInstance.__slots__)
    asked = {call for _, call, _ in fake.calls(gpu=0)}
    assert not asked & {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetAttributes_v2"}


def test_a_card_that_is_split_anew_shows_its_new_instances_and_no_old_one(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.mig_7x1g(fake)
    one = opened(0)
    before = {instance.uuid for instance in one.read().mig_instances}
    node.reconfigure()
    after = one.read(MEDIUM).mig_instances
    assert [(instance.index, instance.gpu_instance, instance.profile) for instance in after] == [
        (0, "1", "4g.40gb"),
        (3, "2", "3g.40gb"),  # with empty places between them
    ]
    assert not before & {instance.uuid for instance in after}
    node.slice()
    assert one.read(MEDIUM).mig_instances == ()
    node.slice((6, 13, 1, 10))
    assert [instance.index for instance in one.read(MEDIUM).mig_instances] == [6]


def test_no_handle_is_used_again_after_its_cycle(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.mig_7x1g(fake)
    one = opened(0)
    for _ in range(3):
        node.reconfigure()
        one.read(MEDIUM)
    assert len(fake.calls("nvmlDeviceGetMigDeviceHandleByIndex", gpu=0)) == 3 * 7


def test_the_samples_of_instances_that_are_gone_are_freed(fake: FakeNvml, opened: Open) -> None:
    node = scenarios.mig_7x1g(fake)
    one = opened(0)
    for _ in range(20):
        one.read(MEDIUM)
        node.reconfigure()
    one.read(MEDIUM)
    assert fake.count("samples") <= 2 + 2 * 7
    node.slice((0, 1, 7, 80))
    one.read(MEDIUM)
    one.read(MEDIUM)
    assert fake.count("samples") <= 2 + 2
    one.device.close()
    assert fake.count("samples") == 0


def test_an_instance_that_goes_while_it_is_asked_is_left_out(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    fake.fault("nvmlDeviceGetComputeInstanceId", code=2, after=3)
    reading = opened(0).read()
    assert [instance.index for instance in reading.mig_instances] == [0, 1, 2]
    assert reading.up


def test_the_memory_of_a_gpu_instance_is_not_counted_for_each_of_its_compute_instances(
    fake: FakeNvml, opened: Open
) -> None:
    node = scenarios.mig_7x1g(fake)
    node.slice((0, 1, 3, 40), (1, 1, 3, 40), (2, 5, 2, 20))
    fake.set("gpu 0 mig.0.name NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb", "gpu 0 mig.1.ci 1")
    fake.set("gpu 0 mig.1.name NVIDIA H100 80GB HBM3 MIG 2c.3g.40gb+me")
    instances = opened(0).read().mig_instances
    assert [(m.gpu_instance, m.compute_instance, m.profile) for m in instances] == [
        ("1", "0", "1c.3g.40gb"),
        ("1", "1", "2c.3g.40gb+me"),
        ("5", "0", "2g.20gb"),
    ]
    assert sum(m.memory_total_bytes or 0 for m in instances) == 60 * GIBI
    assert [m.memory_used_bytes for m in instances] == [38 << 20, None, 38 << 20]
    assert len(fake.calls("nvmlGpmMigSampleGet", gpu=0)) == 2


@pytest.mark.parametrize("name", ["NVIDIA H100 80GB HBM3", "-1", "A MIG\u2028x", "X MIG " + "1" * 50])
def test_a_profile_that_the_name_does_not_tell_is_absent(fake: FakeNvml, opened: Open, name: str) -> None:
    scenarios.mig_7x1g(fake)
    fake.set(f"gpu 0 mig.0.name {name}")
    assert opened(0).read().mig_instances[0].profile is None


def test_instances_that_may_not_be_seen_are_absent_with_that_reason(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    fake.fault("nvmlDeviceGetMigDeviceHandleByIndex", code=4)
    reading = opened(0).read()
    assert reading.mig_instances == ()
    assert reading.unavailable["mig_instances"] == Reason.ACCESS_DENIED


def test_memory_that_an_instance_does_not_tell_is_absent(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    fake.set("gpu 0 mig.0.mem_total -1")
    instances = opened(0).read().mig_instances
    assert (instances[0].memory_total_bytes, instances[0].memory_used_bytes) == (None, None)
    assert instances[1].memory_total_bytes == 10 * GIBI


def test_a_card_that_becomes_whole_has_its_utilisation_back_and_no_instance(fake: FakeNvml, opened: Open) -> None:
    scenarios.mig_7x1g(fake)
    one = opened(0)
    assert len(one.read().mig_instances) == 7
    fake.set("gpu 0 mig 0", "gpu 0 util 42")
    fake.unset("gpu 0 mig.")
    one.read(MEDIUM)
    reading = one.read()
    assert (reading.mig_instances, reading.mig_mode, reading.utilization_ratio) == ((), False, 0.42)


def test_a_lost_card_has_no_instances(fake: FakeNvml, watch: Watch) -> None:
    scenarios.mig_7x1g(fake)
    node = watch(FAST, ready=False)
    node.until(lambda: node.all_up(2))
    assert len(node.gpu(0).mig_instances) == 7
    fake.fault(gpu=0, code=15)
    node.until(lambda: not node.gpu(0).up)
    assert node.gpu(0).mig_instances == ()
    assert node.gpu(1).up
