"""A /proc that is not there: files of the kernel's formats in a folder."""

import shutil
from pathlib import Path

FIRST_PID_NAMESPACE, A_CONTAINERS = "pid:[4026531836]", "pid:[4026532501]"


class FakeProc:
    """``namespace`` is the PID namespace that this process seems to live in."""

    def __init__(self, folder: Path, namespace: str = FIRST_PID_NAMESPACE) -> None:
        self.folder = folder / "proc"
        (self.folder / "self/ns").mkdir(parents=True)
        (self.folder / "self/ns/pid").symlink_to(namespace)
        self.add(1, b"systemd")

    def add(self, pid: int, comm: bytes = b"python3", cgroup: str = "/") -> None:
        """A process. ``cgroup`` is a path of cgroup v2, or a whole file."""
        process = self.folder / str(pid)
        process.mkdir(exist_ok=True)
        (process / "comm").write_bytes(comm + b"\n")
        (process / "cgroup").write_text(cgroup if "\n" in cgroup else f"0::{cgroup}\n")

    def end(self, pid: int) -> None:
        shutil.rmtree(self.folder / str(pid))
