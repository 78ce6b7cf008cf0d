"""Supervises NVML: starts it, gives each GPU its thread, starts it anew when the driver went away.

A generation is the time from one ``nvmlInit`` to its ``nvmlShutdown``. Everything that calls NVML runs in daemon
threads; the methods here only look at what those have left, so they never wait.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from pinchpoint.snapshot import Absence, GpuReading, NvmlCalls, PeerLink, Reason, SourceReport
from pinchpoint.sources.gpu import nvml
from pinchpoint.sources.gpu.announcer import Announcer
from pinchpoint.sources.gpu.calls import CallBook
from pinchpoint.sources.gpu.host_pids import HostPids
from pinchpoint.sources.gpu.nvml import LibraryDownError
from pinchpoint.sources.gpu.pci import count_nvidia_gpus
from pinchpoint.sources.gpu.roster import Roster
from pinchpoint.sources.gpu.settings import GpuSettings
from pinchpoint.sources.gpu.site import Site
from pinchpoint.sources.gpu.topology import Topology
from pinchpoint.sources.gpu.worker import Worker

log = structlog.get_logger(__name__)

FIRST_BACKOFF_SECONDS = 1.0
FAREWELL_SECONDS = 0.5
WATCH_SECONDS = 0.2


class GpuSource:
    """This node's GPUs. ``readings`` and ``report`` are for one thread, and never block."""

    def __init__(
        self,
        settings: GpuSettings,
        clock: Callable[[], float] = time.monotonic,
        sysfs: Path = Path("/sys"),
        proc: Path = Path("/proc"),
    ) -> None:
        self._settings, self._clock = settings, clock
        self._site = Site(settings, clock, sysfs, CallBook(clock), HostPids(proc))
        self._calls = self._site.calls.ledger("supervisor")
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._starting_since: float | None = None  # nvmlInit is in progress
        self._generation_since = clock()
        self._workers: tuple[Worker, ...] = ()
        self._topology = Topology(self._site)
        self._roster, self._announcer = Roster(), Announcer()
        self._has_worked = False
        self._visible: int | None = None
        self._on_the_bus: int | None = None
        self._last_success: tuple[float, float] | None = None  # a reading's time: monotonic, Unix
        why = (
            (Reason.STARTING, "NVML is being started")
            if settings.enabled
            else (Reason.NOT_CONFIGURED, "gpu.enabled is false")
        )
        self._absence: Absence | None = Absence("gpu", *why, clock())

    def start(self) -> None:
        """Begin to observe. Returns at once."""
        if self._settings.enabled:
            self._thread.start()
            if self._settings.processes and not self._site.host_pids.visible:
                log.warning("processes on GPUs have no names here", remedy="share the host's PIDs: hostPID, --pid=host")

    def stop(self) -> None:
        """End within half a second. A call that hangs is left behind in its daemon thread, and NVML open with it."""
        self._ending.set()
        for worker in self._workers:
            worker.end()
        if self._thread.is_alive():
            self._thread.join(FAREWELL_SECONDS)

    def readings(self, now: float) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]:
        """Every known GPU, up or down, and what is absent: NVML as a whole, or a GPU before its first reading."""
        absence = self._absence_at(now)
        gpus: tuple[GpuReading, ...] = ()
        starting: tuple[Absence, ...] = ()
        if absence is None:
            began = self._generation_since
            views = {worker.index: worker.view(now) for worker in self._workers}
            gpus = self._roster.settle((view for view in views.values() if view), now)
            starting = tuple(
                Absence(f"gpu/{index}", Reason.STARTING, f"GPU {index} is being read for the first time", began)
                for index, view in views.items()
                if view is None
            )
        self._announcer.tell(gpus, absence)
        return gpus, (absence,) if absence else starting

    def report(self, now: float) -> SourceReport:
        """Up while one GPU is; the duration is that of the slowest GPU's last cycle."""
        views = [view for worker in self._workers if (view := worker.view(now)) and view.up]
        newest = max((view.at for view in views), default=None)
        if newest is not None and (self._last_success is None or newest > self._last_success[0]):
            self._last_success = newest, time.time() - (now - newest)
        durations = [worker.duration_seconds for worker in self._workers if worker.duration_seconds is not None]
        return SourceReport(
            source="gpu",
            up=bool(views) and self._absence_at(now) is None,
            duration_seconds=max(durations, default=None),
            last_success_timestamp_seconds=self._last_success[1] if self._last_success else None,
        )

    def calls(self, now: float) -> NvmlCalls:
        """What the NVML calls have cost, and those that have not returned."""
        return self._site.calls.report(now)

    @property
    def links(self) -> tuple[PeerLink, ...]:
        """How the GPUs are connected, as far as it has been walked; empty while NVML is unavailable."""
        return () if self._absence else self._topology.links

    @property
    def gpus_visible(self) -> int | None:
        """How many GPUs NVML shows; 0 when it says that it can't, ``None`` before its first answer."""
        return self._visible

    @property
    def gpus_expected(self) -> int | None:
        """How many there should be: as set, else the most that the PCI bus has shown."""
        return self._on_the_bus if self._settings.gpus_expected is None else self._settings.gpus_expected

    @property
    def outdated(self) -> bool:
        """Whether the driver was upgraded under this process, which can't change its library: a new one can."""
        absence = self._absence
        return self._has_worked and absence is not None and absence.reason is Reason.DRIVER_MISMATCH

    def _absence_at(self, now: float) -> Absence | None:
        absent, began, limit = self._absence, self._starting_since, self._settings.deadline_seconds
        if began is not None and now - began > limit:
            detail = (
                f"nvmlInit has not returned within {limit:g} s; look for an Xid in dmesg, the node may need a reboot"
            )
            return Absence("gpu", Reason.HUNG, detail, min(began, absent.at) if absent else began)
        return absent

    def _run(self) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        while not self._ending.is_set():
            began = self._clock()
            self._on_the_bus = max(self._on_the_bus or 0, count_nvidia_gpus(self._site.sysfs) or 0) or None
            try:
                self._generation()
                continue
            except LibraryDownError as fault:
                self._give_up(fault.reason, fault.detail)
            except Exception:  # the thread's one guard: a defect of ours must not end the observation of every GPU
                log.exception("supervising NVML failed")
                self._give_up(Reason.ERROR, "a defect of pinchpoint; see its log")
            lasted = self._clock() - began > self._settings.retry_seconds
            backoff = min(FIRST_BACKOFF_SECONDS if lasted else backoff, self._settings.retry_seconds)
            self._ending.wait(backoff)
            backoff *= 2

    def _give_up(self, reason: Reason, detail: str) -> None:
        self._starting_since, self._visible = None, 0
        began = self._absence.at if self._absence else self._clock()  # a retry that fails is the same absence
        self._absence = Absence("gpu", reason, detail, began)

    def _generation(self) -> None:
        """From init to shutdown. Returns when NVML is to be started anew at once; raises LibraryDownError."""
        self._starting_since = self._generation_since = self._clock()
        versions, count = nvml.start(self._calls)
        if not count:
            nvml.shutdown(self._calls)
            raise LibraryDownError(
                Reason.NO_DEVICES, "NVML counts no GPU; check lspci and dmesg, or pass one to the container"
            )
        previous = {worker.index: worker.latest for worker in self._workers}
        workers = tuple(Worker(index, versions, self._site, previous.get(index)) for index in range(count))
        self._workers, self._topology = workers, Topology(self._site)
        self._topology.start(lambda: {worker.index: worker.view(self._clock()) for worker in workers})
        self._visible, self._starting_since, self._absence, self._has_worked = count, None, None, True
        try:
            self._watch(count)
        finally:
            self._retire()

    def _watch(self, count: int) -> None:
        """Until the end, a fault of NVML as a whole, another number of GPUs, or a while in which no GPU answered.

        The latter two wait for a GPU that hangs: NVML can't be shut down under it without blanking the others.
        """
        look_again = self._clock() + self._settings.retry_seconds
        while not self._ending.wait(WATCH_SECONDS):
            for worker in self._workers:
                if fault := worker.library_fault:
                    self._give_up(fault.reason, fault.detail)
                    raise fault
            now = self._clock()
            if now < look_again or any(thread.hung(now) for thread in self._threads()):
                continue
            look_again = now + self._settings.retry_seconds
            views = [worker.view(now) for worker in self._workers]
            if self._count() not in (count, None) or not any(view.up for view in views if view):
                return

    def _count(self) -> int | None:
        """As long as a GPU answers, an error here is no reason to blank it."""
        try:
            self._visible = nvml.count(self._calls)
        except LibraryDownError:
            self._visible = None
        return self._visible

    def _retire(self) -> None:
        """End the threads, then NVML, once none of them is inside a call; if the source ends, only if that is soon."""
        for thread in self._threads():
            thread.end()
        patience = time.monotonic() + FAREWELL_SECONDS / 2
        while not all(thread.ended() for thread in self._threads()):
            if self._ending.is_set() and time.monotonic() > patience:
                return
            time.sleep(0.01)
        nvml.shutdown(self._calls)

    def _threads(self) -> tuple[Worker | Topology, ...]:
        return (*self._workers, self._topology)
