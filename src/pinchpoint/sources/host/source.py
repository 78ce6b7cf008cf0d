"""The host source: rates between two looks at the kernel's counters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pinchpoint.snapshot import EngineHost, EngineProcess, HostReading
from pinchpoint.sources.host import kernel
from pinchpoint.sources.host.engines import EngineHosts
from pinchpoint.sources.host.rates import share

_NONE: Mapping[str, EngineProcess] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    cpu: kernel.CpuTime | None = None
    stall_seconds: float | None = None


class HostSource:
    """Reads the host that this process sees; in a container too the CPUs are the host's.

    Quotas are those of the engines' own cgroups: the one that this process is in is another's business. Engines in a
    cgroup namespace that this process is not in show no quota.
    """

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc = proc
        self._engines = EngineHosts(proc, cgroups)
        self._last: _Look | None = None

    def read(self, now: float, engines: Mapping[str, EngineProcess] = _NONE) -> HostReading:
        """The mean since the last call; the first has no rates. A kernel file that is missing is a ``None``."""
        look = _Look(
            at=now, cpu=kernel.cpu_time(self._proc), stall_seconds=kernel.cpu_stall_seconds(self._proc / "pressure/cpu")
        )
        last, self._last = self._last or _Look(now), look
        each = self._engines.read(now, engines)
        return HostReading(
            at=now,
            cpu_utilization_ratio=_utilization(last.cpu, look.cpu),
            cpu_count=float(look.cpu.cpus) if look.cpu and look.cpu.cpus else None,
            cpu_throttled_ratio=max(_told(host.cpu_throttled_ratio for host in each.values()), default=None),
            cpu_pressure_ratio=_pressure(last, look),
            engine_cpu_cores=_cores(each, engines),
            memory_available_bytes=kernel.memory_available_bytes(self._proc),
            engines=each,
        )


def _cores(each: Mapping[str, EngineHost], engines: Mapping[str, EngineProcess]) -> float | None:
    """Of all engines; one process may be the server of several."""
    distinct = {engines[name].pid: host.cpu_cores for name, host in each.items()}
    return sum(cores) if (cores := _told(distinct.values())) else None


def _told(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _utilization(last: kernel.CpuTime | None, look: kernel.CpuTime | None) -> float | None:
    return share(look.busy - last.busy, look.total - last.total) if last and look else None


def _pressure(last: _Look, look: _Look) -> float | None:
    if last.stall_seconds is None or look.stall_seconds is None:
        return None
    return share(look.stall_seconds - last.stall_seconds, look.at - last.at)
