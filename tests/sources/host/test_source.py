"""The host source on a tree of files that looks like the kernel's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.host import HostSource, kernel


class Kernel:
    """A fake /proc and /sys/fs/cgroup."""

    def __init__(self, root: Path) -> None:
        self.proc, self.cgroups = root / "proc", root / "cgroup"
        self.write(self.proc / "self/cgroup", "1:cpu:/old\n0::/pod/engine\n")

    def write(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def cpu(self, user: int, idle: int, iowait: int = 0, steal: int = 0) -> None:
        rows = "".join(f"cpu{i} 1 0 0 1 0 0 0 0 0 0\n" for i in range(4))
        total = f"cpu  {user} 0 0 {idle} {iowait} 0 0 {steal} 999 0\n"
        self.write(self.proc / "stat", f"{total}{rows}intr 12345 0 9\n")

    def stall(self, microseconds: int) -> None:
        text = f"some avg10=0.00 avg60=0.00 avg300=0.00 total={microseconds}\nfull avg10=0.00 total=7\n"
        self.write(self.proc / "pressure/cpu", text)

    def quota(self, throttled: int, periods: int) -> None:
        text = f"usage_usec 5\nnr_periods {periods}\nnr_throttled {throttled}\nthrottled_usec 9\n"
        self.write(self.cgroups / "pod/engine/cpu.stat", text)


@pytest.fixture
def linux(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def source(linux: Kernel) -> HostSource:
    return HostSource(proc=linux.proc, cgroups=linux.cgroups)


def test_a_reading_is_the_mean_since_the_one_before(linux: Kernel) -> None:
    host = source(linux)
    linux.cpu(user=1000, idle=5000)
    linux.stall(2_000_000)
    linux.quota(throttled=10, periods=100)
    linux.write(linux.proc / "meminfo", "MemTotal: 8000 kB\nMemAvailable:    4000 kB\n")
    host.read(100.0)
    linux.cpu(user=1600, idle=5300, iowait=60, steal=40)
    linux.stall(3_500_000)
    linux.quota(throttled=25, periods=150)
    reading = host.read(105.0)
    assert reading.at == 105.0
    assert reading.cpu_utilization_ratio == 0.64  # 600 user and 40 stolen of 1000 ticks
    assert reading.cpu_count == 4
    assert reading.cpu_pressure_ratio == pytest.approx(0.3)
    assert reading.cpu_throttled_ratio == pytest.approx(0.3)
    assert reading.memory_available_bytes == 4_096_000
    assert reading.engine_cpu_cores is None


def test_the_first_reading_has_no_rates(linux: Kernel) -> None:
    linux.cpu(user=1000, idle=5000)
    linux.stall(2_000_000)
    linux.quota(throttled=10, periods=100)
    reading = source(linux).read(100.0)
    rates = (reading.cpu_utilization_ratio, reading.cpu_pressure_ratio, reading.cpu_throttled_ratio)
    assert rates == (None, None, None)
    assert reading.cpu_count == 4


def test_a_kernel_without_any_of_the_files_has_a_reading_of_nothing(tmp_path: Path) -> None:
    host = HostSource(proc=tmp_path / "nowhere", cgroups=tmp_path / "nowhere")
    host.read(1.0)
    reading = host.read(2.0)
    assert reading.cpu_utilization_ratio is None
    assert reading.cpu_count is None
    assert reading.cpu_pressure_ratio is None
    assert reading.cpu_throttled_ratio is None
    assert reading.memory_available_bytes is None


def test_a_quota_that_had_no_period_since_is_unknown_and_not_zero(linux: Kernel) -> None:
    host = source(linux)
    linux.quota(throttled=10, periods=100)
    host.read(1.0)
    assert host.read(2.0).cpu_throttled_ratio is None


def test_a_counter_that_went_back_gives_no_rate(linux: Kernel) -> None:
    host = source(linux)
    linux.cpu(user=1000, idle=5000)
    linux.stall(9_000_000)
    host.read(1.0)
    linux.cpu(user=900, idle=5200)
    linux.stall(1_000_000)
    reading = host.read(2.0)
    assert (reading.cpu_utilization_ratio, reading.cpu_pressure_ratio) == (None, None)


def test_the_root_cgroup_has_no_quota(linux: Kernel) -> None:
    linux.write(linux.proc / "self/cgroup", "0::/\n")
    linux.write(linux.cgroups / "cpu.stat", "usage_usec 5\nuser_usec 3\n")
    assert kernel.quota_periods(linux.proc, linux.cgroups) is None


def test_a_cgroup_outside_the_namespace_is_not_looked_for(linux: Kernel) -> None:
    linux.write(linux.cgroups.parent / "secret/cpu.stat", "nr_periods 1\nnr_throttled 1\n")
    linux.write(linux.proc / "self/cgroup", "0::/../secret\n")
    assert kernel.quota_periods(linux.proc, linux.cgroups) is None


@given(text=st.binary(max_size=300))
def test_no_content_of_a_file_raises(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    linux = Kernel(tmp_path_factory.mktemp("garbage"))
    for path in ("stat", "meminfo", "pressure/cpu", "self/cgroup"):
        linux.write(linux.proc / path, "")
        (linux.proc / path).write_bytes(
            b"cpu  " + text + b"\nsome " + text + b"\nMemAvailable: " + text + b"\n0::/" + text
        )
    host = source(linux)
    host.read(1.0)
    host.read(2.0)
