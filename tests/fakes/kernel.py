"""A tree of files that looks like the kernel's: /proc, and a mounted cgroup v2."""

from pathlib import Path

TICKS = 100  # a second, on every Linux


class FakeKernel:
    """Counters are what the kernel has counted so far; microseconds where it counts in them."""

    def __init__(self, root: Path) -> None:
        self.proc, self.cgroups = root / "proc", root / "cgroup"

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cpu(self, user: int, idle: int, iowait: int = 0, steal: int = 0) -> None:
        rows = "".join(f"cpu{i} 1 0 0 1 0 0 0 0 0 0\n" for i in range(4))
        total = f"cpu  {user} 0 0 {idle} {iowait} 0 0 {steal} 999 0\n"
        self.write(self.proc / "stat", f"{total}{rows}intr 12345 0 9\n")

    def stall(self, microseconds: int, cgroup: str | None = None) -> None:
        """Of the host, or of a cgroup."""
        text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={microseconds}\nfull avg10=0.00 total=7\n"
        file = self.proc / "pressure/cpu" if cgroup is None else self.cgroups / cgroup / "cpu.pressure"
        self.write(file, text)

    def quota(self, cgroup: str, throttled: int, periods: int, limit: str = "800000 100000") -> None:
        text = f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 9\n"
        self.write(self.cgroups / cgroup / "cpu.stat", text)
        self.write(self.cgroups / cgroup / "cpu.max", limit + "\n")

    def process(
        self,
        pid: int,
        *,
        seconds: float = 0.0,
        system: float = 0.0,
        started: int = 777,
        cgroup: str = "/pod/engine",
        allowed: str = "0-63",
    ) -> None:
        times = f"{round(seconds * TICKS)} {round(system * TICKS)} 99999 99999"
        before = "S 1 1 1 0 -1 4194560 1 2 3 4"
        self.write(self.proc / f"{pid}/stat", f"{pid} (VLLM (x) y) {before} {times} 20 0 9 0 {started} 1 2\n")
        self.write(self.proc / f"{pid}/cgroup", f"1:cpu:/old\n0::{cgroup}\n")
        self.write(self.proc / f"{pid}/status", f"Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n")

    def gone(self, pid: int) -> None:
        for name in ("stat", "cgroup", "status"):
            (self.proc / f"{pid}/{name}").unlink()
