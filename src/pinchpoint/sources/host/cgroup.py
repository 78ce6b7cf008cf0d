"""A process's cgroup v2: how often a quota on it was used up, how much it may have, how long its tasks wait.

Formats: cgroups(7), the kernel's documentation of cgroup v2 (cpu.stat, cpu.max, cpu.pressure).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pinchpoint.sources.host.kernel import lines_of, numbers

MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class QuotaPeriods:
    """Of one cgroup, since it was made."""

    throttled: float
    total: float


def cgroups_of(pid: int, proc: Path, mounted: Path) -> tuple[Path, ...]:
    """The folders of a process's cgroup and of those above it, its own first; the root has no limits.

    None without cgroup v2, and for a process outside of this cgroup namespace: its path begins with "..".
    """
    paths = (line.removeprefix("0::/") for line in lines_of(proc / str(pid) / "cgroup") if line.startswith("0::/"))
    parts = Path(next(paths, "")).parts
    if ".." in parts:
        return ()
    return tuple(mounted.joinpath(*parts[:depth]) for depth in range(len(parts), 0, -1))[:MAX_DEPTH]


def quota_periods(folder: Path) -> QuotaPeriods | None:
    """``None`` without the cpu controller."""
    rows = dict(row for line in lines_of(folder / "cpu.stat") if len(row := line.split()) == 2)
    if not {"nr_throttled", "nr_periods"} <= rows.keys():
        return None
    found = numbers([rows["nr_throttled"], rows["nr_periods"]])
    return QuotaPeriods(*found) if found else None


def quota_cores(folder: Path) -> float | None:
    """``None`` also where there is no quota ("max 100000")."""
    for line in lines_of(folder / "cpu.max"):
        found = numbers(line.split())
        return found[0] / found[1] if found and len(found) == 2 and found[1] > 0 else None
    return None
