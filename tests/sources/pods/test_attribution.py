"""From the device ids of the device plugins to the UUIDs of the GPUs."""

import pytest

from pinchpoint.snapshot import GpuPod, GpuReading, GpuState, MigInstance
from pinchpoint.sources.pods import PodDevice, attribute

WHOLE = GpuReading(gpu="0", uuid="GPU-a", at=0.0, minor_number="1")
SPLIT = GpuReading(
    gpu="1",
    uuid="GPU-b",
    at=0.0,
    minor_number="0",
    mig_instances=(
        MigInstance(uuid="MIG-x", gpu_instance="7", compute_instance="0", index=0),
        MigInstance(uuid="MIG-y", gpu_instance="9", compute_instance="0", index=3),
    ),
)
GPUS = (WHOLE, SPLIT)


def device(device_id: str, pod: str = "chat") -> PodDevice:
    return PodDevice(device_id, "serving", pod, "vllm")


@pytest.mark.parametrize(
    ("device_id", "uuid"),
    [
        ("GPU-a", "GPU-a"),
        ("MIG-x", "MIG-x"),
        ("MIG-GPU-b/7/0", "MIG-GPU-b/7/0"),  # drivers before 470 call it so themselves
        ("GPU-a::0", "GPU-a"),
        ("MIG-x::12", "MIG-x"),
        ("0", "GPU-a"),
        ("1::3", "GPU-b"),
        ("1:3", "MIG-y"),
        ("1:3::1", "MIG-y"),
        ("nvidia0", "GPU-b"),
        ("nvidia1", "GPU-a"),
        ("nvidia1/vgpu3", "GPU-a"),
        ("nvidia0/gi9", "MIG-y"),
        ("nvidia0/gi7/vgpu1", "MIG-x"),
    ],
)
def test_every_form_of_a_device_id_finds_its_gpu(device_id: str, uuid: str) -> None:
    assert attribute([device(device_id)], GPUS) == (
        GpuPod(uuid=uuid, namespace="serving", pod="chat", container="vllm"),
    )


@pytest.mark.parametrize("device_id", ["", "2", "1:1", "0:0", "nvidia7", "nvidia0/gi1", "IOMMU-12", "0000:3b:00.0"])
def test_a_device_that_stands_for_no_known_gpu_is_nobodys(device_id: str) -> None:
    assert attribute([device(device_id)], GPUS) == ()


def test_a_shared_gpu_has_a_row_for_each_container_and_none_twice() -> None:
    rows = attribute([device("GPU-a::0"), device("GPU-a::1"), device("GPU-a::2", "other")], GPUS)
    assert [(row.uuid, row.pod) for row in rows] == [("GPU-a", "chat"), ("GPU-a", "other")]


def test_a_lost_gpu_stays_its_pods() -> None:
    lost = GpuReading(gpu="0", uuid="GPU-a", at=0.0, up=False, state=GpuState.LOST)
    assert [row.uuid for row in attribute([device("0"), device("GPU-gone")], [lost])] == ["GPU-a", "GPU-gone"]
