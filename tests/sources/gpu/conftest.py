"""A node of eight fake GPUs in this process, and the source that watches it."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pinchpoint.snapshot import Absence, GpuReading
from pinchpoint.sources.gpu import GpuSettings, GpuSource, nvml
from pinchpoint.sources.gpu.calls import CallBook
from pinchpoint.sources.gpu.device import Device
from pinchpoint.sources.gpu.host_pids import HostPids
from pinchpoint.sources.gpu.nvml import NvmlGpu
from pinchpoint.sources.gpu.site import Site
from tests.fakes.nvml import FakeNvml

# Unvalidated, for it is faster than an operator may ask for.
FAST = GpuSettings.model_construct(interval_seconds=0.05, deadline_seconds=0.5, retry_seconds=0.15, kernel_log=False)


class Watched:
    """A running source and what one asks of it in a test."""

    def __init__(self, source: GpuSource) -> None:
        self.source = source

    def gpus(self) -> tuple[GpuReading, ...]:
        return self.source.readings(time.monotonic())[0]

    def absences(self) -> tuple[Absence, ...]:
        return self.source.readings(time.monotonic())[1]

    def gpu(self, index: int) -> GpuReading:
        return next(gpu for gpu in self.gpus() if gpu.gpu == str(index))

    def until(self, what: Callable[[], object], seconds: float = 10) -> None:
        """Wait for something to become true. A test that needs it sooner than ``seconds`` measures that itself."""
        limit = time.monotonic() + seconds
        while not what():
            assert time.monotonic() < limit, f"not within {seconds} s: {self.source.readings(time.monotonic())}"
            time.sleep(0.01)

    def all_up(self, count: int = 8) -> bool:
        gpus = self.gpus()
        return len(gpus) == count and all(gpu.up for gpu in gpus)

    def next_cycle(self, index: int) -> GpuReading:
        """A reading whose cycle began after this call."""
        asked = time.monotonic()
        self.until(lambda: self.gpu(index).at >= asked)
        return self.gpu(index)


class Opened:
    """One GPU without threads, in a time that stands still until ``read`` is told to go on."""

    def __init__(self, index: int, settings: GpuSettings, sysfs: Path, proc: Path) -> None:
        self.now = 1000.0
        self.site = Site(settings, lambda: self.now, sysfs, CallBook(lambda: self.now), HostPids(proc))
        self.ledger = self.site.calls.ledger("test")
        versions, _ = nvml.start(self.ledger)
        self.device = Device(NvmlGpu(index, lambda: self.now, self.ledger), versions, self.site)

    def read(self, after: float = 1.0) -> GpuReading:
        """The cycle ``after`` seconds from the last."""
        self.now += after
        return self.device.read(self.now)


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeNvml]:
    fake = FakeNvml(tmp_path)
    fake.load()
    yield fake
    fake.unload()
    limit = time.monotonic() + 10
    while threads():
        assert time.monotonic() < limit, f"still there: {threads()}"
        time.sleep(0.01)
    assert fake.count("gpm_overlaps") == 0


@pytest.fixture
def watch(fake: FakeNvml) -> Iterator[Callable[..., Watched]]:
    """Start a source; by default wait until every GPU has been read."""
    sources = []

    def start(settings: GpuSettings = FAST, *, ready: bool = True, sysfs: Path = Path("/nowhere")) -> Watched:
        source = GpuSource(settings, sysfs=sysfs)
        sources.append(source)
        source.start()
        watched = Watched(source)
        if ready:
            watched.until(watched.all_up)
        return watched

    yield start
    fake.clear()
    for source in sources:
        source.stop()


@pytest.fixture
def opened(fake: FakeNvml) -> Iterator[Callable[..., Opened]]:
    """Open one GPU of the fake as it is now."""
    made = []

    def open_one(
        index: int = 0,
        settings: GpuSettings | None = None,
        sysfs: Path = Path("/nowhere"),
        proc: Path = Path("/nowhere"),
    ) -> Opened:
        made.append(Opened(index, settings or GpuSettings(), sysfs, proc))
        return made[-1]

    yield open_one
    fake.clear()
    for one in made:
        nvml.shutdown(one.ledger)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("nvml")]
