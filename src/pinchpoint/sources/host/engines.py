"""What each engine has of the host's CPUs: its processes' time, its cgroup's quota and pressure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pinchpoint.snapshot import EngineHost, EngineProcess
from pinchpoint.sources.host.cgroup import QuotaPeriods, cgroups_of, quota_cores, quota_periods
from pinchpoint.sources.host.kernel import cpu_stall_seconds
from pinchpoint.sources.host.process_cpu import ProcessCpu, allowed_cpus, process_cpu
from pinchpoint.sources.host.rates import share

MAX_PROCESSES = 1024  # of one engine: a front end, an engine core and a worker a GPU, each with a few helpers


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    at: float
    folders: Sequence[Path] = ()  # of its cgroup and those above
    cpu: Mapping[int, ProcessCpu] = field(default_factory=dict)
    periods: Mapping[Path, QuotaPeriods] = field(default_factory=dict)
    stalled_seconds: float | None = None  # of its own cgroup


class EngineHosts:
    """Rates between two looks at each engine's processes. A process that ends between them is lost to the count."""

    def __init__(self, proc: Path, cgroups: Path) -> None:
        self._proc, self._cgroups = proc, cgroups
        self._last: dict[str, _Look] = {}

    def read(self, now: float, engines: Mapping[str, EngineProcess]) -> dict[str, EngineHost]:
        """By engine, of those whose processes are known. The first look has no rates."""
        known = {name: process for name, process in engines.items() if process.pid > 0}
        looks = {name: self._look(now, process) for name, process in known.items()}
        before, self._last = self._last, looks
        return {name: self._engine(process, before.get(name), looks[name]) for name, process in known.items()}

    def _look(self, now: float, process: EngineProcess) -> _Look:
        folders = cgroups_of(process.pid, self._proc, self._cgroups)
        pids = {process.pid, *process.pids[:MAX_PROCESSES]}
        return _Look(
            at=now,
            folders=folders,
            cpu={pid: cpu for pid in pids if (cpu := process_cpu(pid, self._proc)) is not None},
            periods={folder: periods for folder in folders if (periods := quota_periods(folder)) is not None},
            stalled_seconds=cpu_stall_seconds(folders[0] / "cpu.pressure") if folders else None,
        )

    def _engine(self, process: EngineProcess, last: _Look | None, look: _Look) -> EngineHost:
        quotas = [quota_cores(folder) for folder in look.folders]
        limits = [limit for limit in (*quotas, allowed_cpus(process.pid, self._proc)) if limit is not None]
        return EngineHost(
            cpu_cores=_cores(last, look) if last else None,
            cpu_limit_cores=min(limits, default=None),
            cpu_throttled_ratio=_throttled(last, look) if last else None,
            cpu_pressure_ratio=_pressure(last, look) if last else None,
        )


def _cores(last: _Look, look: _Look) -> float | None:
    """Of the processes that are in both looks; a number that passed on to another process is not the same one."""
    spent = [
        max(0.0, now.seconds - before.seconds)
        for pid, now in look.cpu.items()
        if (before := last.cpu.get(pid)) is not None and before.started == now.started
    ]
    return sum(spent) / (look.at - last.at) if spent and look.at > last.at else None


def _throttled(last: _Look, look: _Look) -> float | None:
    """The worst of its cgroup and those above: each has a quota of its own. One without has no periods."""
    shares = [
        part
        for folder, now in look.periods.items()
        if (before := last.periods.get(folder)) is not None
        and (part := share(now.throttled - before.throttled, now.total - before.total)) is not None
    ]
    return max(shares, default=None)


def _pressure(last: _Look, look: _Look) -> float | None:
    if last.stalled_seconds is None or look.stalled_seconds is None or last.folders != look.folders:
        return None
    return share(look.stalled_seconds - last.stalled_seconds, look.at - last.at)
