"""The kernel's files: each function reads one, and says ``None`` where it, or a number in it, is missing.

Formats: proc(5), the kernel's documentation of PSI (accounting/psi).
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


def cpu_time(proc: Path) -> CpuTime | None:
    """From ``stat``; guest time is left out, for user time holds it already."""
    rows = [line.split() for line in lines_of(proc / "stat") if line.startswith("cpu")]
    ticks = numbers(rows[0][1:9]) if rows and rows[0][0] == "cpu" else None
    if ticks is None or len(ticks) < 5:
        return None
    idle = ticks[3] + ticks[4]
    return CpuTime(sum(ticks) - idle, sum(ticks), len(rows) - 1)


def cpu_stall_seconds(file: Path) -> float | None:
    """Seconds so far in which some task waited for a CPU, from a pressure file: the host's, or a cgroup's."""
    for line in lines_of(file):
        if line.startswith("some "):
            total = numbers([word.removeprefix("total=") for word in line.split() if word.startswith("total=")])
            return total[0] * 1e-6 if total else None
    return None


def memory_available_bytes(proc: Path) -> float | None:
    """``MemAvailable`` of ``meminfo``: what could be had without swapping."""
    for line in lines_of(proc / "meminfo"):
        if line.startswith("MemAvailable:"):
            kibibytes = numbers(line.split()[1:2])
            return kibibytes[0] * 1024 if kibibytes else None
    return None


def lines_of(path: Path) -> list[str]:
    """Of a file of at most ``MAX_BYTES``; none where it can't be read."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES).decode("ascii", "replace").splitlines()
    except (OSError, ValueError):  # ValueError: a path that no file can have
        return []


def numbers(words: list[str]) -> list[float] | None:
    """``None`` where any is no number."""
    return [float(word) for word in words] if all(word.isdecimal() and len(word) <= 20 for word in words) else None
