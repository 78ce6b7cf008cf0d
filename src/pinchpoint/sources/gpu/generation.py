"""The threads that call NVML from one ``nvmlInit`` to its ``nvmlShutdown``."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from pinchpoint.snapshot import GpuReading, Reason
from pinchpoint.sources.gpu.events import EventWatch
from pinchpoint.sources.gpu.nvml import LibraryDownError, Versions
from pinchpoint.sources.gpu.site import Site
from pinchpoint.sources.gpu.topology import Topology
from pinchpoint.sources.gpu.worker import Worker
from pinchpoint.sources.gpu.xids import XidLedger


class Generation:
    """One for each start of NVML. A thread for each of ``count`` GPUs, one for their topology, one for their events.

    ``previous`` is what the generation before last said of each index. Before the first there is one without GPUs.
    """

    def __init__(
        self,
        count: int,
        versions: Versions,
        site: Site,
        xids: XidLedger,
        previous: Mapping[int, GpuReading | None],
    ) -> None:
        self._clock, self._deadline_seconds, self._previous = site.clock, site.settings.deadline_seconds, previous
        self._began = site.clock()
        self.workers = tuple(Worker(index, versions, site, previous.get(index)) for index in range(count))
        self.topology = Topology(site)
        self._events: EventWatch | None = None
        if count:
            self.topology.start(lambda: self.views(site.clock()))
            self._events = EventWatch(self._own_readings, xids, site)

    def views(self, now: float) -> dict[int, GpuReading | None]:
        """What there is to say of each GPU; ``None`` before its first cycle has ended."""
        return {worker.index: worker.view(now) for worker in self.workers}

    def latest(self) -> dict[int, GpuReading | None]:
        """What each GPU's thread left last, however old."""
        return {worker.index: worker.latest for worker in self.workers}

    def untold(self, uuid: str, now: float) -> Reason | None:
        """Why events of this GPU may be missed, ``None`` when they are not."""
        return self._events.trouble(uuid, now) if self._events else None

    @property
    def fault(self) -> LibraryDownError | None:
        """What a GPU's thread has found NVML as a whole to be."""
        return next((worker.library_fault for worker in self.workers if worker.library_fault), None)

    def hung(self, now: float) -> bool:
        return any(thread.hung(now) for thread in self._threads())

    def await_first_cycles(self, ending: threading.Event) -> None:
        """What a former generation read long ago is neither to be told now, nor a sign that a GPU hangs."""
        limit = self._clock() + self._deadline_seconds
        while (
            self._clock() < limit
            and not self.fault
            and any(worker.latest and worker.latest is self._previous.get(worker.index) for worker in self.workers)
        ):
            if ending.wait(0.01):
                return

    def end(self) -> None:
        """Ask each thread to end after the call in progress. Does not wait."""
        for thread in self._threads():
            thread.end()

    def ended(self) -> bool:
        return all(thread.ended() for thread in self._threads())

    def _threads(self) -> tuple[Worker | Topology | EventWatch, ...]:
        return (*self.workers, self.topology, self._events) if self._events else ()

    def _own_readings(self) -> Iterator[GpuReading]:
        """What was read since this generation began; nothing of a GPU that hangs."""
        now = self._clock()
        for worker in self.workers:
            if (latest := worker.latest) and latest.at >= self._began and not worker.hung(now):
                yield latest
