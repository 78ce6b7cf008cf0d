"""Whose GPU is whose: the kubelet's device ids become the UUIDs that the GPUs' series bear. Pure."""

import re
from collections.abc import Iterable, Sequence

from pinchpoint.snapshot import GpuPod, GpuReading
from pinchpoint.sources.pods.devices import PodDevice

_REPLICA = "::"  # behind it, the number of a share of the device (time slicing, MPS)
_INDEX = re.compile(r"(\d+)(?::(\d+))?")  # of the GPU, and of the MIG device on it
_DEVICE_NODE = re.compile(r"nvidia(\d+)(?:/gi(\d+))?(?:/vgpu\d+)?")  # GKE's plugin: /dev/nvidia0, a GPU instance


def attribute(devices: Iterable[PodDevice], gpus: Sequence[GpuReading]) -> tuple[GpuPod, ...]:
    """A row for each container and GPU or MIG instance, in the kubelet's order; a GPU that is shared has several.

    A UUID is taken as it is, also when NVML doesn't know it (any more). A device that stands for no known GPU has no
    row: better none than another's.
    """
    rows = (
        GpuPod(uuid=uuid, namespace=device.namespace, pod=device.pod, container=device.container)
        for device in devices
        if (uuid := _uuid(device.device_id.split(_REPLICA)[0], gpus))
    )
    return tuple(dict.fromkeys(rows))


def _uuid(device: str, gpus: Sequence[GpuReading]) -> str | None:
    if device.startswith(("GPU-", "MIG-")):
        return device
    if found := _INDEX.fullmatch(device):
        gpu = next((gpu for gpu in gpus if gpu.gpu == found[1]), None)
        instances = {str(mig.index): mig.uuid for mig in gpu.mig_instances} if gpu else {}
    elif found := _DEVICE_NODE.fullmatch(device):
        gpu = next((gpu for gpu in gpus if gpu.minor_number == found[1]), None)
        instances = {mig.gpu_instance: mig.uuid for mig in gpu.mig_instances} if gpu else {}
    else:
        return None
    return instances.get(found[2]) if found[2] else gpu.uuid if gpu else None
