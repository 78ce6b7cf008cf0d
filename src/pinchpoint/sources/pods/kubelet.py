"""One question to the kubelet: gRPC over its socket, under a deadline, from the event loop.

The library (the extra ``kubernetes``) is loaded at the first question, so that a host without Kubernetes never pays its
20 MB of memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pinchpoint.snapshot import Reason

METHOD = "/v1.PodResourcesLister/List"
MAX_ANSWER_BYTES = 16 << 20  # as the kubelet's own client; gRPC's 4 MiB are too few for a node full of devices
_OPTIONS = (
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    ("grpc.default_authority", "localhost"),  # else the socket's path, which servers written in Go refuse
    ("grpc.enable_http_proxy", 0),
)


class KubeletError(Exception):
    """The kubelet gave no answer: ``reason``, and ``detail`` with the remedy for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


def is_there(socket: Path) -> bool:
    """Whether this node has a kubelet. Raises KubeletError where we may not look, or not ask."""
    try:
        there, ours = socket.is_socket(), os.access(socket, os.W_OK, effective_ids=True)
    except PermissionError:  # of its folder
        there, ours = True, False
    if there and not ours:
        raise KubeletError(Reason.ACCESS_DENIED, "it may not be opened; run as root")
    return there


async def list_pod_resources(socket: Path, timeout_seconds: float) -> bytes:
    """The kubelet's ``ListPodResourcesResponse``. Raises KubeletError; never takes much longer than the timeout."""
    grpc = await asyncio.to_thread(_library)
    with grpc.insecure_channel(_address(socket), options=_OPTIONS) as channel:
        call = channel.unary_unary(METHOD).future(b"", timeout=timeout_seconds)  # an empty request has no bytes
        await _ended(call)
        try:
            answer: bytes = call.result()
        except grpc.RpcError as error:
            raise _refusal(grpc, error) from error
        return answer


def _address(socket: Path) -> str:
    return f"unix://{quote(str(socket.absolute()))}"


async def _ended(call: Any) -> None:
    """Wait without a thread of ours, so that the end of the process waits for no kubelet."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended before the call
            loop.call_soon_threadsafe(ended.set)

    call.add_done_callback(tell)
    try:
        await ended.wait()
    finally:
        call.cancel()


def _library() -> Any:
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told by us
    try:
        import grpc
    except ImportError as error:
        raise KubeletError(Reason.NO_LIBRARY, "grpcio is missing; pip install 'pinchpoint[kubernetes]'") from error
    return grpc


def _refusal(grpc: Any, error: Any) -> KubeletError:
    codes = grpc.StatusCode
    told = " ".join(str(error.details()).split())[:200]
    known = {
        codes.DEADLINE_EXCEEDED: (Reason.TIMEOUT, "it did not answer in time; see the kubelet's log"),
        codes.UNAVAILABLE: (Reason.CONNECT_REFUSED, "nobody answers; is the kubelet running?"),
        codes.PERMISSION_DENIED: (Reason.ACCESS_DENIED, "it does not let us ask; run as root"),
        codes.UNIMPLEMENTED: (Reason.NOT_SUPPORTED, "it does not know the v1 API, which came with Kubernetes 1.20"),
    }
    if error.code() is codes.RESOURCE_EXHAUSTED and "larger than max" in told:
        return KubeletError(Reason.TOO_LARGE, f"its answer is larger than {MAX_ANSWER_BYTES >> 20} MiB")
    reason, detail = known.get(error.code(), (Reason.REFUSED, "it answers with an error; see the kubelet's log"))
    return KubeletError(reason, f"{detail} ({error.code().name.lower()}: {told})")
