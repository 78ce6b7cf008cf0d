"""The host source on a tree of files that looks like the kernel's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import EngineProcess
from pinchpoint.sources.host import HostSource
from tests.fakes.kernel import FakeKernel


@pytest.fixture
def linux(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def source(linux: FakeKernel) -> HostSource:
    return HostSource(proc=linux.proc, cgroups=linux.cgroups)


def test_a_reading_is_the_mean_since_the_one_before(linux: FakeKernel) -> None:
    host = source(linux)
    linux.cpu(user=1000, idle=5000)
    linux.stall(2_000_000)
    linux.write(linux.proc / "meminfo", "MemTotal: 8000 kB\nMemAvailable:    4000 kB\n")
    host.read(100.0)
    linux.cpu(user=1600, idle=5300, iowait=60, steal=40)
    linux.stall(3_500_000)
    reading = host.read(105.0)
    assert reading.at == 105.0
    assert reading.cpu_utilization_ratio == 0.64  # 600 user and 40 stolen of 1000 ticks
    assert reading.cpu_count == 4
    assert reading.cpu_pressure_ratio == pytest.approx(0.3)
    assert reading.memory_available_bytes == 4_096_000


def test_without_a_known_engine_nothing_is_said_of_quotas_and_engines(linux: FakeKernel) -> None:
    """The container that we are in is not the engine's."""
    host = source(linux)
    linux.process(1, cgroup="/exporter")
    (linux.proc / "self").symlink_to("1")
    linux.quota("exporter", throttled=1, periods=10)
    host.read(1.0)
    linux.quota("exporter", throttled=9, periods=20)
    reading = host.read(2.0)
    assert (reading.cpu_throttled_ratio, reading.engine_cpu_cores, reading.engines) == (None, None, {})


def test_the_first_reading_has_no_rates(linux: FakeKernel) -> None:
    linux.cpu(user=1000, idle=5000)
    linux.stall(2_000_000)
    linux.process(7, seconds=5.0)
    linux.quota("pod/engine", throttled=10, periods=100)
    reading = source(linux).read(100.0, {"chat": EngineProcess(pid=7)})
    assert (reading.cpu_utilization_ratio, reading.cpu_pressure_ratio, reading.cpu_throttled_ratio) == (None,) * 3
    assert reading.engine_cpu_cores is None
    assert reading.cpu_count == 4


def test_a_kernel_without_any_of_the_files_has_a_reading_of_nothing(tmp_path: Path) -> None:
    host = HostSource(proc=tmp_path / "nowhere", cgroups=tmp_path / "nowhere")
    engines = {"chat": EngineProcess(pid=7)}
    host.read(1.0, engines)
    reading = host.read(2.0, engines)
    assert reading.cpu_utilization_ratio is None
    assert reading.cpu_count is None
    assert reading.cpu_pressure_ratio is None
    assert reading.cpu_throttled_ratio is None
    assert reading.engine_cpu_cores is None
    assert reading.memory_available_bytes is None


def test_a_counter_that_went_back_gives_no_rate(linux: FakeKernel) -> None:
    host = source(linux)
    linux.cpu(user=1000, idle=5000)
    linux.stall(9_000_000)
    host.read(1.0)
    linux.cpu(user=900, idle=5200)
    linux.stall(1_000_000)
    reading = host.read(2.0)
    assert (reading.cpu_utilization_ratio, reading.cpu_pressure_ratio) == (None, None)


@given(text=st.binary(max_size=300))
def test_no_content_of_a_file_raises(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    linux = FakeKernel(tmp_path_factory.mktemp("garbage"))
    for path in ("stat", "meminfo", "pressure/cpu", "7/cgroup", "7/stat", "7/status"):
        linux.write(linux.proc / path, "")
        (linux.proc / path).write_bytes(
            b"cpu  " + text + b"\nsome " + text + b"\nMemAvailable: " + text + b"\n0::/" + text + b"\n) " + text
        )
    for name in ("cpu.stat", "cpu.max", "cpu.pressure"):
        linux.write(linux.cgroups / name, "")
        (linux.cgroups / name).write_bytes(b"nr_throttled " + text + b"\nnr_periods " + text)
    host = source(linux)
    host.read(1.0, {"chat": EngineProcess(pid=7)})
    host.read(2.0, {"chat": EngineProcess(pid=7)})
