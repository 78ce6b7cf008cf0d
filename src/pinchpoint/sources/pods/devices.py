"""What the kubelet says of NVIDIA devices: its answer's message as values.

Messages and field numbers: Kubernetes, ``k8s.io/kubelet/pkg/apis/podresources/v1/api.proto``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pinchpoint.sources.pods.protobuf import fields, text

MAX_DEVICES = 4096  # 16 GPUs shared by 64 pods each are 1,024
MAX_TEXT = 253  # the longest name that Kubernetes allows
_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu|mig-)")


@dataclass(frozen=True, slots=True)
class PodDevice:
    """One device of one container. ``device_id`` is the device plugin's: a UUID, an index, or either with a suffix."""

    device_id: str
    namespace: str
    pod: str
    container: str


def decode(answer: bytes) -> tuple[PodDevice, ...]:
    """The GPUs and MIG devices of a ``ListPodResourcesResponse``. Raises ValueError on anything else."""
    return tuple(islice(_devices(memoryview(answer)), MAX_DEVICES))


def _devices(answer: memoryview) -> Iterator[PodDevice]:
    for number, pod in fields(answer):  # ListPodResourcesResponse
        if number != 1:
            continue
        name, namespace, containers = _texts(pod, 1), _texts(pod, 2), _messages(pod, 3)  # PodResources
        for container in containers:
            for resource in _messages(container, 2):  # ContainerResources
                if _GPU_RESOURCE.match(_texts(resource, 1)):  # ContainerDevices
                    ids = (text(content)[:MAX_TEXT] for field, content in fields(resource) if field == 2)
                    yield from (PodDevice(device, namespace, name, _texts(container, 1)) for device in ids)


def _messages(message: memoryview, wanted: int) -> list[memoryview]:
    return [content for number, content in fields(message) if number == wanted]


def _texts(message: memoryview, wanted: int) -> str:
    """The field's last value, as protobuf has it; empty when it isn't there."""
    found = _messages(message, wanted)
    return text(found[-1])[:MAX_TEXT] if found else ""
