"""The host source: rates between two looks at the kernel's counters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pinchpoint.snapshot import HostReading
from pinchpoint.sources.host import kernel


@dataclass(frozen=True, slots=True)
class _Look:
    at: float
    cpu: kernel.CpuTime | None = None
    stall_seconds: float | None = None
    periods: kernel.QuotaPeriods | None = None


class HostSource:
    """Reads the host that this process sees; in a container the CPU is the host's, the quota the container's.

    ``engine_cpu_cores`` stays ``None``: it takes knowing which processes are the engine's.
    """

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc, self._cgroups = proc, cgroups
        self._last: _Look | None = None

    def read(self, now: float) -> HostReading:
        """The mean since the last call; the first has no rates. A kernel file that is missing is a ``None``."""
        look = _Look(
            at=now,
            cpu=kernel.cpu_time(self._proc),
            stall_seconds=kernel.cpu_stall_seconds(self._proc),
            periods=kernel.quota_periods(self._proc, self._cgroups),
        )
        last, self._last = self._last or _Look(now), look
        return HostReading(
            at=now,
            cpu_utilization_ratio=_utilization(last.cpu, look.cpu),
            cpu_count=float(look.cpu.cpus) if look.cpu and look.cpu.cpus else None,
            cpu_throttled_ratio=_throttled(last.periods, look.periods),
            cpu_pressure_ratio=_pressure(last, look),
            memory_available_bytes=kernel.memory_available_bytes(self._proc),
        )


def _utilization(last: kernel.CpuTime | None, look: kernel.CpuTime | None) -> float | None:
    return _share(look.busy - last.busy, look.total - last.total) if last and look else None


def _throttled(last: kernel.QuotaPeriods | None, look: kernel.QuotaPeriods | None) -> float | None:
    """A quiet cgroup has no periods; one without a quota never has any."""
    return _share(look.throttled - last.throttled, look.total - last.total) if last and look else None


def _pressure(last: _Look, look: _Look) -> float | None:
    if last.stall_seconds is None or look.stall_seconds is None:
        return None
    return _share(look.stall_seconds - last.stall_seconds, look.at - last.at)


def _share(part: float, whole: float) -> float | None:
    """``None`` when no time has passed or a counter went back (iowait may, by a tick). The clocks differ a little."""
    return min(part / whole, 1.0) if whole > 0 and part >= 0 else None
