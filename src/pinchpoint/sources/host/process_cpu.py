"""What the kernel says of one process: its CPU time, and the CPUs that it may run on. Format: proc(5)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pinchpoint.sources.host.kernel import lines_of, numbers


@dataclass(frozen=True, slots=True)
class ProcessCpu:
    """``started`` is when, in ticks since boot: with the process id, what no other process ever has."""

    started: float
    seconds: float


def process_cpu(pid: int, proc: Path) -> ProcessCpu | None:
    """User and system time so far. A child's counts when it is looked at itself."""
    text = "".join(lines_of(proc / str(pid) / "stat"))
    fields = text.rpartition(")")[2].split()  # behind the name, which may hold spaces and brackets
    found = numbers([fields[19], *fields[11:13]]) if len(fields) > 19 else None
    if found is None:
        return None
    started, user, system = found
    return ProcessCpu(started, (user + system) / os.sysconf("SC_CLK_TCK"))


def allowed_cpus(pid: int, proc: Path) -> float | None:
    """How many CPUs it may run on: a cpuset's, or what ``taskset`` left."""
    for line in lines_of(proc / str(pid) / "status"):
        if line.startswith("Cpus_allowed_list:"):
            return _counted(line.partition(":")[2].strip()) or None
    return None


def _counted(ranges: str) -> float:
    """Of "0-3,8": 5; 0 where it is no list of numbers."""
    found = 0.0
    for each in ranges.split(","):
        ends = numbers(each.split("-"))
        if ends is None or len(ends) > 2 or ends[-1] < ends[0]:
            return 0.0
        found += ends[-1] - ends[0] + 1
    return found
