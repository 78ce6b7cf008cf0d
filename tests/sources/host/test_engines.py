"""What each engine has of the host's CPUs, by its processes and its cgroup."""

import os
import time
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineHost, EngineProcess, HostReading
from pinchpoint.sources.host import HostSource
from tests.fakes.kernel import FakeKernel

CHAT = {"chat": EngineProcess(pid=7, pids=(7, 8, 9))}


@pytest.fixture
def linux(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


@pytest.fixture
def host(linux: FakeKernel) -> HostSource:
    return HostSource(proc=linux.proc, cgroups=linux.cgroups)


def chat(reading: HostReading) -> EngineHost:
    return reading.engines["chat"]


def test_an_engine_uses_what_all_its_processes_use(linux: FakeKernel, host: HostSource) -> None:
    for pid in (7, 8, 9):
        linux.process(pid, seconds=100.0)
    host.read(10.0, CHAT)
    linux.process(7, seconds=101.0, system=0.5)
    linux.process(8, seconds=105.0)
    linux.process(9, seconds=105.0)
    reading = host.read(15.0, CHAT)
    assert chat(reading).cpu_cores == pytest.approx(2.3)
    assert reading.engine_cpu_cores == pytest.approx(2.3)


def test_a_process_that_came_or_went_or_took_over_a_number_is_not_counted(linux: FakeKernel, host: HostSource) -> None:
    linux.process(7, seconds=10.0)
    linux.process(8, seconds=50.0, started=800)
    host.read(10.0, CHAT)
    linux.process(7, seconds=11.0)
    linux.process(8, seconds=90.0, started=1200)
    linux.process(9, seconds=30.0)
    assert chat(host.read(11.0, CHAT)).cpu_cores == pytest.approx(1.0)
    linux.gone(9)
    linux.process(8, seconds=90.5, started=1200)
    assert chat(host.read(12.0, CHAT)).cpu_cores == pytest.approx(0.5)


def test_the_server_of_two_engines_is_counted_once(linux: FakeKernel, host: HostSource) -> None:
    both = {"chat": EngineProcess(pid=7), "code": EngineProcess(pid=7), "other": EngineProcess(pid=8)}
    linux.process(7, seconds=1.0)
    linux.process(8, seconds=1.0)
    host.read(1.0, both)
    linux.process(7, seconds=3.0)
    linux.process(8, seconds=2.0)
    assert host.read(2.0, both).engine_cpu_cores == pytest.approx(3.0)


def test_an_engine_whose_process_is_unknown_has_no_host(linux: FakeKernel, host: HostSource) -> None:
    reading = host.read(1.0, {"chat": EngineProcess(pid=0)})
    assert reading.engines == {}


def test_quota_and_pressure_are_those_of_the_engines_own_cgroup(linux: FakeKernel, host: HostSource) -> None:
    linux.process(7)
    linux.quota("pod/engine", throttled=10, periods=100)
    linux.stall(0, "pod/engine")
    linux.stall(0)
    host.read(10.0, CHAT)
    linux.quota("pod/engine", throttled=25, periods=150)
    linux.stall(2_000_000, "pod/engine")
    linux.stall(4_500_000)
    reading = host.read(15.0, CHAT)
    assert chat(reading).cpu_throttled_ratio == pytest.approx(0.3)
    assert chat(reading).cpu_pressure_ratio == pytest.approx(0.4)
    assert reading.cpu_pressure_ratio == pytest.approx(0.9)
    assert reading.cpu_throttled_ratio == pytest.approx(0.3)


def test_a_quota_above_counts_as_ones_own(linux: FakeKernel, host: HostSource) -> None:
    """A pod's quota holds all of its containers, and a unit's all of its processes."""
    linux.process(7, cgroup="/pod/engine")
    linux.quota("pod/engine", throttled=0, periods=0, limit="max 100000")
    linux.quota("pod", throttled=10, periods=100, limit="400000 100000")
    host.read(10.0, CHAT)
    linux.quota("pod", throttled=60, periods=200, limit="400000 100000")
    reading = chat(host.read(20.0, CHAT))
    assert reading.cpu_throttled_ratio == pytest.approx(0.5)
    assert reading.cpu_limit_cores == 4


def test_the_reading_names_the_worst_quota(linux: FakeKernel, host: HostSource) -> None:
    engines = {"chat": EngineProcess(pid=7), "code": EngineProcess(pid=8)}
    linux.process(7, cgroup="/chat")
    linux.process(8, cgroup="/code")
    for name in ("chat", "code"):
        linux.quota(name, throttled=0, periods=100)
    host.read(1.0, engines)
    linux.quota("chat", throttled=10, periods=200)
    linux.quota("code", throttled=80, periods=200)
    reading = host.read(2.0, engines)
    assert reading.cpu_throttled_ratio == pytest.approx(0.8)
    assert reading.engines["chat"].cpu_throttled_ratio == pytest.approx(0.1)


def test_a_quota_that_had_no_period_since_is_unknown_and_not_zero(linux: FakeKernel, host: HostSource) -> None:
    linux.process(7)
    linux.quota("pod/engine", throttled=10, periods=100)
    host.read(1.0, CHAT)
    assert chat(host.read(2.0, CHAT)).cpu_throttled_ratio is None


def test_the_cgroup_of_another_namespace_is_not_looked_for(linux: FakeKernel, host: HostSource) -> None:
    linux.process(7, cgroup="/../secret", allowed="0-3")
    linux.write(linux.cgroups.parent / "secret/cpu.max", "100000 100000\n")
    assert chat(host.read(1.0, CHAT)).cpu_limit_cores == 4


@pytest.mark.parametrize(
    ("limit", "allowed", "cores"),
    [
        ("max 100000", "0-15", 16.0),
        ("250000 100000", "0-15", 2.5),
        ("3200000 100000", "0-7,16-23,31", 17.0),
        ("max 100000", "nonsense", None),
    ],
)
def test_an_engine_may_have_the_least_of_quota_and_allowed_cpus(
    linux: FakeKernel, host: HostSource, limit: str, allowed: str, cores: float | None
) -> None:
    linux.process(7, allowed=allowed)
    linux.quota("pod/engine", throttled=0, periods=0, limit=limit)
    assert chat(host.read(1.0, CHAT)).cpu_limit_cores == cores


def test_an_engine_that_begins_anew_begins_its_count_anew(linux: FakeKernel, host: HostSource) -> None:
    linux.process(7, seconds=900.0)
    host.read(1.0, {"chat": EngineProcess(pid=7)})
    linux.process(70, seconds=3.0, started=5000)
    assert chat(host.read(2.0, {"chat": EngineProcess(pid=70)})).cpu_cores is None


def test_the_real_kernel_tells_of_a_process_that_works() -> None:
    engines = {"chat": EngineProcess(pid=os.getpid())}
    host = HostSource()
    host.read(0.0, engines)
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    cores = chat(host.read(1.0, engines)).cpu_cores
    assert cores is not None
    assert 0.05 < cores < 1.0
