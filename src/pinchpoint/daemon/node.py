"""What the daemon observes apart from engines: this machine, or a simulated one of the same shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pinchpoint.config import Settings
from pinchpoint.snapshot import Absence, EngineProcess, GpuReading, HostReading, NvmlCalls, PeerLink, SourceReport
from pinchpoint.sources.gpu import GpuSource
from pinchpoint.sources.host import HostSource

# Now, and the processes of engines on this host. May read files, so it is called in a thread.
ReadHost = Callable[[float, Mapping[str, EngineProcess]], HostReading]


class GpuSourceLike(Protocol):
    """A source of GPU readings that observes in threads of its own; no method here waits for a GPU."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def readings(self, now: float, /) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]: ...
    def report(self, now: float, /) -> SourceReport | None: ...
    def calls(self, now: float, /) -> NvmlCalls: ...
    @property
    def gpus_expected(self) -> int | None: ...
    @property
    def gpus_visible(self) -> int | None: ...
    @property
    def outdated(self) -> bool: ...
    @property
    def links(self) -> tuple[PeerLink, ...]: ...


class NoGpus:
    """GPUs that nobody wants to know of: nothing is observed, and nothing is missed."""

    gpus_expected: int | None = None
    gpus_visible: int | None = None
    outdated = False
    links: tuple[PeerLink, ...] = ()

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def readings(self, _: float) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]:
        return (), ()

    def report(self, _: float) -> None:
        return None

    def calls(self, _: float) -> NvmlCalls:
        return NvmlCalls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    gpus: GpuSourceLike
    host: ReadHost
    simulated: bool = False


def this_node(settings: Settings) -> Node:
    """The machine that the daemon runs on. Calls nothing of NVML yet."""
    gpus = GpuSource(settings.gpu) if settings.gpu.enabled else NoGpus()
    return Node(gpus=gpus, host=HostSource().read)
