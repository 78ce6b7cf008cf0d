"""What a process costs, from /proc."""

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time so far, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def rss_bytes(pid: int) -> int:
    return 1024 * int(_status(pid, "VmRSS"))


def threads(pid: int) -> int:
    return int(_status(pid, "Threads"))


def _status(pid: int, key: str) -> str:
    return Path(f"/proc/{pid}/status").read_text().split(f"\n{key}:", 1)[1].split()[0]
