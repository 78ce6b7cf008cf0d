"""The kernel's files: each function reads one, and says ``None`` where it, or a number in it, is missing.

Formats: proc(5), the kernel's documentation of PSI (accounting/psi) and of cgroup v2 (cgroup-v2, cpu.stat).
"""

from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 1 << 20  # /proc/stat of a host with thousands of interrupts stays below


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Since boot, in clock ticks, over all ``cpus``. Waiting for a disk is idle; what a hypervisor steals is busy."""

    busy: float
    total: float
    cpus: int


@dataclass(frozen=True, slots=True)
class QuotaPeriods:
    """Of one cgroup, since it was made."""

    throttled: float
    total: float


def cpu_time(proc: Path) -> CpuTime | None:
    """From ``stat``; guest time is left out, for user time holds it already."""
    rows = [line.split() for line in _lines(proc / "stat") if line.startswith("cpu")]
    ticks = _numbers(rows[0][1:9]) if rows and rows[0][0] == "cpu" else None
    if ticks is None or len(ticks) < 5:
        return None
    idle = ticks[3] + ticks[4]
    return CpuTime(sum(ticks) - idle, sum(ticks), len(rows) - 1)


def cpu_stall_seconds(proc: Path) -> float | None:
    """Seconds since boot in which some task waited for a CPU, from ``pressure/cpu``."""
    for line in _lines(proc / "pressure/cpu"):
        if line.startswith("some "):
            total = _numbers([word.removeprefix("total=") for word in line.split() if word.startswith("total=")])
            return total[0] * 1e-6 if total else None
    return None


def memory_available_bytes(proc: Path) -> float | None:
    """``MemAvailable`` of ``meminfo``: what could be had without swapping."""
    for line in _lines(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            kibibytes = _numbers(line.split()[1:2])
            return kibibytes[0] * 1024 if kibibytes else None
    return None


def quota_periods(proc: Path, cgroups: Path) -> QuotaPeriods | None:
    """Of this process's own cgroup; ``None`` without cgroup v2, without the cpu controller, or in the root cgroup."""
    paths = (line.removeprefix("0::").lstrip("/") for line in _lines(proc / "self/cgroup") if line.startswith("0::/"))
    own = next(paths, None)
    if own is None or ".." in Path(own).parts:  # ".." is a cgroup outside this namespace: it can't be read from here
        return None
    rows = dict(line.split() for line in _lines(cgroups / own / "cpu.stat") if len(line.split()) == 2)
    if not {"nr_throttled", "nr_periods"} <= rows.keys():
        return None
    numbers = _numbers([rows["nr_throttled"], rows["nr_periods"]])
    return QuotaPeriods(*numbers) if numbers else None


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("ascii", "replace").splitlines()
    except (OSError, ValueError):  # ValueError: a path that no file can have
        return []


def _numbers(words: list[str]) -> list[float] | None:
    return [float(word) for word in words] if all(word.isdecimal() and len(word) <= 20 for word in words) else None
