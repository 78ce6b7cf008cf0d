"""/proc in small bounded pieces: what the kernel says of processes. Formats: proc(5)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

MAX_BYTES = 65_536
MAX_LINKS = 200_000  # of file descriptors in one search

Holders = Mapping[int, tuple[tuple[int, str], ...]]  # of a socket (inode): process, and its descriptor (123/fd/7)


class Proc:
    """Every answer is empty for a process that has ended, or that the system does not show us.

    A command line is behind the process's memory lock, which one that hangs in a driver may hold for long: whoever asks
    for it does so in a thread that may hang.
    """

    def __init__(self, root: Path = Path("/proc")) -> None:
        self.root = str(root)

    def pids(self) -> tuple[int, ...]:
        try:
            return tuple(sorted(int(name) for name in os.listdir(self.root) if name.isdecimal()))
        except OSError:
            return ()

    def parents(self) -> dict[int, int]:
        """Of every process its parent."""
        found = ((pid, self._stat(pid)) for pid in self.pids())
        return {pid: int(stat[1]) for pid, stat in found if len(stat) > 1}

    def started_ticks(self, pid: int) -> int | None:
        """When it began, in ticks since boot: with the process id, what no other process ever has."""
        stat = self._stat(pid)
        return int(stat[19]) if len(stat) > 19 else None

    def started_unix(self, pid: int) -> float | None:
        ticks, boot = self.started_ticks(pid), self._read("stat").partition(b"\nbtime ")[2].split(b"\n", 1)[0]
        return None if ticks is None or not boot.isdigit() else int(boot) + ticks / os.sysconf("SC_CLK_TCK")

    def command(self, pid: int) -> str:
        """Its name, 15 bytes at most. Waits for nothing."""
        return self._read(f"{pid}/comm").decode("utf-8", "replace").strip()

    def arguments(self, pid: int) -> tuple[str, ...]:
        """Its command line, or the title that it gave itself. Holds secrets: to be picked from, never to be kept."""
        text = self._read(f"{pid}/cmdline").decode("utf-8", "replace").rstrip("\0")
        return tuple(text.split("\0")) if text else ()

    def environment(self, pid: int, wanted: Collection[str]) -> dict[str, str]:
        """The ``wanted`` variables that it began with; no other leaves this function."""
        pairs = (item.partition("=") for item in self._read(f"{pid}/environ").decode("utf-8", "replace").split("\0"))
        return {name: value for name, _, value in pairs if name in wanted}

    def cgroups(self, pid: int) -> str:
        return self._read(f"{pid}/cgroup").decode("utf-8", "replace")

    def own_numbers(self, pid: int) -> frozenset[int]:
        """What it is called in its own PID namespace and in those above."""
        status = self._read(f"{pid}/status").decode("utf-8", "replace")
        line = status.partition("\nNSpid:")[2].partition("\n")[0]
        return frozenset(int(number) for number in line.split() if number.isdecimal()) | {pid}

    def user(self, pid: int) -> int | None:
        try:
            return os.stat(f"{self.root}/{pid}").st_uid
        except OSError:
            return None

    def link(self, path: str) -> str:
        """What a symbolic link below /proc points to."""
        try:
            return os.readlink(f"{self.root}/{path}")
        except OSError:
            return ""

    def holders(self, sockets: Collection[int], pids: Collection[int]) -> Holders:
        """Who of ``pids`` has each socket open; one that nobody has is not in the answer."""
        names = {f"socket:[{inode}]": inode for inode in sockets}
        found: dict[int, list[tuple[int, str]]] = {}
        left = MAX_LINKS
        for pid in pids:
            for descriptor in self._descriptors(pid):
                left -= 1
                if (inode := names.get(self.link(descriptor))) is not None:
                    found.setdefault(inode, []).append((pid, descriptor))
            if left <= 0:
                break
        return {inode: tuple(who) for inode, who in found.items()}

    def _descriptors(self, pid: int) -> Iterator[str]:
        try:
            numbers = os.listdir(f"{self.root}/{pid}/fd")
        except OSError:  # another user's
            return
        yield from (f"{pid}/fd/{number}" for number in numbers)

    def _stat(self, pid: int) -> list[bytes]:
        """The fields behind the name, which may hold spaces and brackets: state, parent, …"""
        return self._read(f"{pid}/stat").rpartition(b")")[2].split()

    def _read(self, path: str) -> bytes:
        try:
            with open(f"{self.root}/{path}", "rb") as file:
                return file.read(MAX_BYTES)
        except OSError:
            return b""
