"""Supervises NVML: starts it, gives each GPU its thread, starts it anew when the driver went away.

Everything that calls NVML runs in daemon threads: the one here, and those of each ``generation``. The public methods
only look at what those have left, so they never wait.
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
from pinchpoint.sources.gpu.generation import Generation
from pinchpoint.sources.gpu.hold import Hold, open_device_files
from pinchpoint.sources.gpu.host_pids import HostPids
from pinchpoint.sources.gpu.kernel_log import KernelLog
from pinchpoint.sources.gpu.nvml import LibraryDownError, Versions
from pinchpoint.sources.gpu.pci import count_nvidia_gpus
from pinchpoint.sources.gpu.roster import Roster
from pinchpoint.sources.gpu.settings import GpuSettings
from pinchpoint.sources.gpu.site import Site
from pinchpoint.sources.gpu.xids import XidLedger

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
        self._roster, self._announcer, self._hold, self._xids = Roster(), Announcer(), Hold(), XidLedger()
        self._kernel_log = KernelLog(settings.kernel_log, self._xids, clock)
        self._generation = Generation(0, Versions(None, None), self._site, self._xids, {})
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
            self._kernel_log.start()
            if self._settings.processes and not self._site.host_pids.visible:
                log.warning(
                    "processes on GPUs have no names here",
                    remedy="share the host's PIDs: hostPID, --pid=host; or hidepid hides them",
                )

    def stop(self) -> None:
        """End within half a second. A call that hangs is left behind in its daemon thread, and NVML open with it."""
        self._ending.set()
        self._kernel_log.end()
        self._generation.end()
        if self._thread.is_alive():
            self._thread.join(FAREWELL_SECONDS)

    def readings(self, now: float) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]:
        """Every known GPU, up or down, and what is absent: NVML as a whole, or a GPU before its first reading."""
        absence = self._absence_at(now)
        gpus: tuple[GpuReading, ...] = ()
        starting: tuple[Absence, ...] = ()
        if absence is None:
            began = self._generation_since
            views = self._generation.views(now)
            gpus = self._roster.settle((view for view in views.values() if view), now)
            starting = tuple(
                Absence(f"gpu/{index}", Reason.STARTING, f"GPU {index} is being read for the first time", began)
                for index, view in views.items()
                if view is None
            )
        self._announcer.tell(gpus, absence)
        gpus = tuple(self._xids.onto(gpu, self._untold(gpu.uuid, now)) for gpu in gpus)
        absences = (absence,) if absence else starting
        return gpus, (*absences, log_absence) if (log_absence := self._kernel_log.absence) else absences

    def pause(self) -> None:
        """Have NVML shut down once the calls in progress have returned, and keep it down until ``resume``.

        Returns at once: ``held_by`` tells when it is done.
        """
        self._hold.pause(self._clock())

    def resume(self) -> None:
        """Start NVML again, as a new generation. Returns at once."""
        self._hold.resume()

    def held_by(self, now: float) -> str | None:
        """What keeps this process from having let go of the driver, for people; ``None`` once it has."""
        if self._hold.taken:
            hung = [worker.view(now) for worker in self._generation.workers if worker.hung(now)]
            said = [view.detail for view in hung if view]
            if (init := self._init_hangs(now)) is not None:
                said.append(init.detail)
            return "; ".join(said) or "NVML is open; calls are in progress"
        files = open_device_files()
        return f"this process still has {', '.join(files)} open, which only its end closes" if files else None

    def report(self, now: float) -> SourceReport:
        """Up while one GPU is; the duration is that of the slowest GPU's last cycle."""
        views = [view for view in self._generation.views(now).values() if view and view.up]
        newest = max((view.at for view in views), default=None)
        if newest is not None and (self._last_success is None or newest > self._last_success[0]):
            self._last_success = newest, time.time() - (now - newest)
        durations = [w.duration_seconds for w in self._generation.workers if w.duration_seconds is not None]
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
        return () if self._absence else self._generation.topology.links

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
        since, limit = self._hold.paused_at, self._settings.deadline_seconds
        overdue = since is not None and (not self._hold.taken or now - since > limit)
        if since is not None and overdue and (holder := self.held_by(now)):
            return Absence("gpu", Reason.HUNG, f"a pause was asked for and can't be done: {holder}", since)
        return self._init_hangs(now) or self._absence

    def _init_hangs(self, now: float) -> Absence | None:
        began, limit = self._starting_since, self._settings.deadline_seconds
        if began is None or now - began <= limit:
            return None
        detail = f"nvmlInit has not returned within {limit:g} s; look for an Xid in dmesg, the node may need a reboot"
        return Absence("gpu", Reason.HUNG, detail, min(began, self._absence.at) if self._absence else began)

    def _untold(self, uuid: str, now: float) -> Reason | None:
        """Why Xids of this GPU may be missed."""
        return None if self._kernel_log.following else self._generation.untold(uuid, now)

    def _run(self) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        while not self._ending.is_set():
            if not self._hold.take():
                self._rest()
                continue
            began = self._clock()
            self._on_the_bus = max(self._on_the_bus or 0, count_nvidia_gpus(self._site.sysfs) or 0) or None
            try:
                self._live()
                continue
            except LibraryDownError as fault:
                self._give_up(fault.reason, fault.detail)
            except Exception:  # the thread's one guard: a defect of ours must not end the observation of every GPU
                log.exception("supervising NVML failed")
                self._give_up(Reason.ERROR, "a defect of pinchpoint; see its log")
            finally:
                self._hold.drop()
            lasted = self._clock() - began > self._settings.retry_seconds
            backoff = min(FIRST_BACKOFF_SECONDS if lasted else backoff, self._settings.retry_seconds)
            self._wait(backoff)
            backoff *= 2

    def _wait(self, seconds: float) -> None:
        """Until then, or the end, or a pause."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and self._hold.paused_at is None:
            if self._ending.wait(min(left, WATCH_SECONDS)):
                return

    def _rest(self) -> None:
        """NVML is down on request; until it is resumed."""
        self._visible, since = None, self._hold.paused_at or self._clock()
        detail = "NVML is shut down on request; pinchpoint gpu resume (POST /-/gpu/resume) starts it again"
        self._absence = Absence("gpu", Reason.PAUSED, detail, since)
        while self._hold.paused_at is not None:
            if self._ending.wait(WATCH_SECONDS):
                return
        self._absence = Absence("gpu", Reason.STARTING, "NVML is being started again", self._clock())

    def _give_up(self, reason: Reason, detail: str) -> None:
        self._starting_since, self._visible = None, 0
        began = self._absence.at if self._absence else self._clock()  # a retry that fails is the same absence
        self._absence = Absence("gpu", reason, detail, began)

    def _live(self) -> None:
        """One generation. Returns when NVML is to be started anew at once; raises LibraryDownError."""
        self._starting_since = self._generation_since = self._clock()
        versions, count = nvml.start(self._calls)
        if not count:
            nvml.shutdown(self._calls)
            raise LibraryDownError(
                Reason.NO_DEVICES, "NVML counts no GPU; check lspci and dmesg, or pass one to the container"
            )
        generation = self._generation = Generation(count, versions, self._site, self._xids, self._generation.latest())
        self._visible, self._starting_since, self._has_worked = count, None, True
        try:
            if self._absence:
                generation.await_first_cycles(self._ending)
            self._absence = None
            self._watch(generation, count)
        finally:
            self._retire(generation)

    def _watch(self, generation: Generation, count: int) -> None:
        """Until the end, a pause, a fault of NVML, another number of GPUs, or a while in which no GPU answered.

        The latter three wait for a GPU that hangs: NVML can't be shut down under it without blanking the others.
        """
        look_again = self._clock() + self._settings.retry_seconds
        while not self._ending.wait(WATCH_SECONDS):
            if fault := generation.fault:
                self._give_up(fault.reason, fault.detail)
                raise fault
            now = self._clock()
            if generation.hung(now):
                continue
            if self._hold.paused_at is not None:
                return
            if now < look_again:
                continue
            look_again = now + self._settings.retry_seconds
            if self._count() not in (count, None) or not any(v.up for v in generation.views(now).values() if v):
                return

    def _count(self) -> int | None:
        """As long as a GPU answers, an error here is no reason to blank it."""
        try:
            self._visible = nvml.count(self._calls)
        except LibraryDownError:
            self._visible = None
        return self._visible

    def _retire(self, generation: Generation) -> None:
        """End the threads, then NVML, once none of them is inside a call; if the source ends, only if that is soon."""
        generation.end()
        patience = time.monotonic() + FAREWELL_SECONDS / 2
        while not generation.ended():
            if self._ending.is_set() and time.monotonic() > patience:
                return
            time.sleep(0.01)
        nvml.shutdown(self._calls)
