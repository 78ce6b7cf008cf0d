"""What the host's /proc says of a process id that NVML gave: whether it lives, its command, container and pod.

NVML's process ids are those of the host's first PID namespace, also inside a container. Formats: proc(5), cgroups(7),
and the paths that Docker, containerd, CRI-O, Podman and the kubelet's two cgroup drivers make.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MAX_BYTES = 4096
MAX_COMMAND = 64  # the kernel's limit is 15
_FIRST_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-f])")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProcess:
    """All of it is text that the process chose, or may have chosen."""

    command: str | None = None
    container: str | None = None
    pod_uid: str | None = None


class HostPids:
    """The processes of the host, as far as ``visible``: not from a PID namespace of our own, as containers have, nor to
    a user from whom /proc (mounted with hidepid) hides those of others: they would all seem to have ended."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        try:
            ours = os.readlink(proc / "self/ns/pid")
            self.visible = ours == _FIRST_PID_NAMESPACE and (proc / "1").exists()  # hidepid hides what is another's
        except OSError:
            self.visible = False

    def alive(self, pid: int) -> bool:
        """Means something only while they are visible."""
        return (self._proc / str(pid)).exists()

    def describe(self, pid: int) -> HostProcess:
        """What is known of a process; nothing of one that has ended, or while they are not visible.

        Its command line would say more, but to read that is to wait for the process's memory lock, and one that hangs
        in the driver may hold it.
        """
        if not self.visible:
            return HostProcess()
        folder = self._proc / str(pid)
        containers = _CONTAINER.findall(cgroups := _read(folder / "cgroup"))  # one inside another: the last is its own
        pod = _POD.search(cgroups)
        return HostProcess(
            command=_printable(_read(folder / "comm")),
            container=containers[-1] if containers else None,
            pod_uid=pod[1].replace("_", "-") if pod else None,
        )


def _printable(name: str) -> str | None:
    """A process may call itself anything, in at most 15 bytes."""
    return "".join(letter if letter.isprintable() else "?" for letter in name.strip()[:MAX_COMMAND]) or None


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
