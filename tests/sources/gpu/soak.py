"""The GPU source at a thousand times its pace, through every scenario, again and again; prints what it holds on to.

``python -m tests.sources.gpu.soak FOLDER CYCLES``: a JSON line per round, taken when the node is healthy and at rest.
The last round is the first after ``CYCLES`` cycles of GPU 0, which is healthy in every scenario.
"""

import gc
import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pinchpoint.snapshot import GpuReading, Reason
from pinchpoint.sources.gpu import GpuSettings, GpuSource
from pinchpoint.sources.gpu.device import Device
from tests.fakes.nvml import COUNTERS, FakeNvml, scenarios

FAST = GpuSettings.model_construct(
    interval_seconds=0.001,
    medium_interval_seconds=0.02,
    slow_interval_seconds=0.1,
    deadline_seconds=0.4,
    stale_after_seconds=0.8,
    retry_seconds=0.05,
    processes=True,
    kernel_log=False,
)
STEPS, CYCLES_PER_STEP = 3, 4
PATIENCE_SECONDS = 30.0
MAY_BE_DOWN = 1  # of the GPUs of a scenario, and never the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """What the process holds at one moment."""

    cycles: int
    rss_bytes: int
    threads: int
    files: int
    objects: int
    samples: int
    event_sets: int
    inits: int


class Soak:
    """One source's life with one fake."""

    def __init__(self, folder: Path) -> None:
        self.fake = FakeNvml(folder)
        self.fake.load(log=False)
        self.reads: Counter[str] = Counter()
        read = Device.read

        def counted(device: Device, at: float) -> GpuReading:
            reading = read(device, at)
            self.reads[reading.gpu] += 1
            return reading

        Device.read = counted  # type: ignore[method-assign]
        self.source = GpuSource(FAST, sysfs=Path("/nowhere"))
        self.source.start()

    def round(self) -> Holding:
        """Every scenario once; then well again."""
        for scenario in scenarios.ALL.values():
            node = scenario(self.fake)
            self.fake.set("gpm_shortest_ms 0")
            if scenario is scenarios.init_hung:  # another count of GPUs than before, so NVML is started anew
                self._until(self._hung_at_the_start, "a start that hangs to be reported")
                self.fake.clear()
            self._settle()
            for _ in range(STEPS):
                node.step()
                self._go_on()
            self.fake.clear()
        scenarios.h100x8_nvswitch(self.fake)
        self._until(self._well, "everything to be well")
        return self._holding()

    def end(self) -> None:
        self.source.stop()
        self._until(lambda: not _nvml_threads(), "the threads to end")
        assert [self.fake.count(what) for what in COUNTERS] == [0] * len(COUNTERS)

    def _gpus(self) -> tuple[GpuReading, ...]:
        return self.source.readings(time.monotonic())[0]

    def _well(self) -> bool:
        """Every GPU is up and has both of its profiling samples."""
        gpus = self._gpus()
        return len(gpus) == 8 and all(gpu.up and gpu.sm_active_ratio is not None for gpu in gpus)

    def _hung_at_the_start(self) -> bool:
        absences = self.source.readings(time.monotonic())[1]
        return any(absence.reason is Reason.HUNG for absence in absences)

    def _settle(self) -> None:
        count = int(next(line for line in self.fake.lines if line.startswith("gpus ")).split()[1])

        def settled() -> bool:
            up = [gpu.gpu for gpu in self._gpus() if gpu.up]
            return self.source.gpus_visible == count and "0" in up and count - MAY_BE_DOWN <= len(up) <= count

        self._until(settled, f"{count} GPUs")

    def _go_on(self) -> None:
        wanted = self.reads["0"] + CYCLES_PER_STEP

        def gone_on() -> bool:
            self._gpus()
            self.source.report(time.monotonic())
            return self.reads["0"] >= wanted

        self._until(gone_on, "some cycles")

    def _until(self, what: Callable[[], object], description: str) -> None:
        limit = time.monotonic() + PATIENCE_SECONDS
        while not what():
            if time.monotonic() > limit:
                raise TimeoutError(f"{description}, with {self.fake.lines[:3]}")
            time.sleep(0.002)

    def _holding(self) -> Holding:
        gc.collect()
        return Holding(
            cycles=self.reads["0"],
            rss_bytes=int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
            threads=threading.active_count(),
            files=len(os.listdir("/proc/self/fd")),
            objects=len(gc.get_objects()),
            samples=self.fake.count("samples"),
            event_sets=self.fake.count("event_sets"),
            inits=self.fake.count("inits"),
        )


def _nvml_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("nvml")]


def main(folder: str, cycles: str) -> None:
    soak = Soak(Path(folder))
    while soak.reads["0"] < int(cycles):
        print(json.dumps(asdict(soak.round())), flush=True)
    soak.end()


if __name__ == "__main__":
    main(*sys.argv[1:])
