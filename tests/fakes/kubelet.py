"""A kubelet's pod-resources service: real gRPC on a real socket, its messages by Google's own protobuf library.

The messages are those of ``k8s.io/kubelet/pkg/apis/podresources/v1/api.proto``, with what pinchpoint passes over too.
"""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Field = descriptor_pb2.FieldDescriptorProto
MESSAGES = {
    "NUMANode": ["int64 ID"],
    "TopologyInfo": ["NUMANode* nodes"],
    "ContainerDevices": ["string resource_name", "string* device_ids", "TopologyInfo topology"],
    "ContainerMemory": ["string memory_type", "uint64 size", "TopologyInfo topology"],
    "ContainerResources": ["string name", "ContainerDevices* devices", "int64* cpu_ids", "ContainerMemory* memory"],
    "PodResources": ["string name", "string namespace", "ContainerResources* containers"],
    "ListPodResourcesResponse": ["PodResources* pod_resources"],
}
NUMBERS = {"string": Field.TYPE_STRING, "int64": Field.TYPE_INT64, "uint64": Field.TYPE_UINT64}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, members in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, member in enumerate(members, 1):
            kind, field_name = member.split()
            label = Field.LABEL_REPEATED if kind.endswith("*") else Field.LABEL_OPTIONAL
            kind = kind.removesuffix("*")
            field = message.field.add(name=field_name, number=number, label=label)
            field.type = NUMBERS.get(kind, Field.TYPE_MESSAGE)
            if kind not in NUMBERS:
                field.type_name = f".v1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in MESSAGES}


CLASSES = _classes()
Container = tuple[str, str, Sequence[str]]  # name, resource, device ids


def answer(**pods: Sequence[Container]) -> bytes:
    """A ``ListPodResourcesResponse`` of these pods, all in namespace ``serving``, as a kubelet encodes it."""
    response = CLASSES["ListPodResourcesResponse"]()
    for pod, containers in pods.items():
        entry = response.pod_resources.add(name=pod, namespace="serving")
        for name, resource, ids in containers:
            container = entry.containers.add(name=name, cpu_ids=[3, 64, 300])
            container.memory.add(memory_type="memory", size=1 << 40)
            devices = container.devices.add(resource_name=resource, device_ids=ids)
            devices.topology.nodes.add(ID=1)
    return bytes(response.SerializeToString())


class FakeKubelet:
    """Serves ``answer`` at ``socket``; ``code`` makes it refuse instead, and ``stuck`` never answer."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.answer = answer()
        self.code: grpc.StatusCode | None = None
        self.stuck = False
        self.asked = 0
        self.authority = ""
        self.ending = threading.Event()

    def _list(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        self.asked += 1
        self.authority = context._rpc_event.call_details.host.decode()  # the library has no public way to it
        if self.stuck:
            self.ending.wait()
        if self.code:
            context.abort(self.code, "the fake\nrefuses")
        return self.answer

    @contextmanager
    def running(self) -> Iterator["FakeKubelet"]:
        handler = grpc.unary_unary_rpc_method_handler(self._list)
        server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.max_send_message_length", -1)])
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
        )
        server.add_insecure_port(f"unix://{self.socket}")
        server.start()
        try:
            yield self
        finally:
            self.ending.set()
            server.stop(None).wait()
            self.socket.unlink(missing_ok=True)
