"""The thread that waits for what the driver tells by itself: Xid errors above all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from pinchpoint.snapshot import GpuReading, Reason
from pinchpoint.sources.gpu.nvml_events import OTHER_EVENTS, XID, Event, EventsError, EventSet
from pinchpoint.sources.gpu.site import Site
from pinchpoint.sources.gpu.xids import NVML, XidLedger

log = structlog.get_logger(__name__)

FIRST_BACKOFF_SECONDS = 1.0
SLICE_MILLISECONDS = 100  # a farewell has to wait for the one in progress


class EventWatch:
    """Tells ``ledger`` of every Xid in one NVML generation, until ``end``; what came before is not told.

    ``gpus`` gives what the GPUs' own threads have read in this generation, by index. A GPU is registered once it
    answers there, so one that hangs at its first call never gets to hang this thread too.
    """

    def __init__(
        self,
        gpus: Callable[[], Iterable[GpuReading]],
        ledger: XidLedger,
        site: Site,
    ) -> None:
        self._gpus, self._ledger, self._settings, self._clock = gpus, ledger, site.settings, site.clock
        self._calls = site.calls.ledger("events")
        self._trouble: Reason | None = None
        self._refused: dict[str, Reason] = {}  # by UUID
        self._failing = False
        self._told: set[tuple[str | None, int]] = set()  # what the log has told
        self._busy_since: float | None = None
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="nvml-events", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end after the slice in progress. Does not wait."""
        self._ending.set()

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def hung(self, now: float) -> bool:
        began = self._busy_since
        return began is not None and now - began > self._settings.deadline_seconds

    def trouble(self, uuid: str, now: float) -> Reason | None:
        """Why this GPU's Xids may be missed, ``None`` when they are not."""
        return Reason.HUNG if self.hung(now) else self._trouble or self._refused.get(uuid)

    def _run(self) -> None:
        backoff = FIRST_BACKOFF_SECONDS
        while not self._ending.is_set():
            began = self._busy_since = self._clock()
            try:
                with EventSet(self._calls) as events:
                    self._follow(events)
                continue
            except EventsError as error:
                self._fail(error)
            except Exception:  # the thread's one guard: a defect of ours is no reason to spin, nor to count no more
                log.exception("waiting for GPU events failed")
                self._trouble = Reason.ERROR
            finally:
                self._busy_since = None
            longest = self._settings.retry_seconds
            lasted = self._clock() - began > longest
            backoff = min(FIRST_BACKOFF_SECONDS if lasted else backoff, longest)
            self._ending.wait(backoff)
            backoff *= 2

    def _fail(self, error: EventsError) -> None:
        self._trouble = error.reason
        if error.gone:
            return  # the GPUs' own threads find it too, and end this generation
        if not self._failing:
            log.warning("the driver's events can't be waited for; it is tried again", error=str(error))
        self._failing = True

    def _follow(self, events: EventSet) -> None:
        """Until the end, or until the set is to be made anew. Raises EventsError."""
        registered: set[str] = set()
        fallen: set[str] = set()
        began = self._clock()
        while not self._ending.is_set():
            self._busy_since = self._clock()
            for gpu in self._gpus():
                if not gpu.up and gpu.uuid in registered:
                    fallen.add(gpu.uuid)
                elif gpu.up and gpu.uuid in fallen:  # it was reset: its registration went with the old life
                    self._refused.pop(gpu.uuid, None)
                    return
                elif gpu.up and gpu.uuid not in registered:
                    registered.add(gpu.uuid)
                    if not self._register(events, gpu):
                        return
            if not len(events):
                self._ending.wait(SLICE_MILLISECONDS / 1000)
            elif event := events.wait(SLICE_MILLISECONDS):
                self._take(event)
            self._trouble = None
            self._recover(began)

    def _register(self, events: EventSet, gpu: GpuReading) -> bool:
        """Whether the set is still good for the others. Raises EventsError."""
        if gpu.uuid in self._refused:
            return True
        self._ledger.know(gpu)  # before its first event: the kernel log may tell of the same error by its address
        try:
            reason = events.register(int(gpu.gpu), gpu.uuid)
        except EventsError as error:
            if not error.spoilt:
                raise
            log.warning("a GPU can't be watched for Xids", gpu=gpu.gpu, uuid=gpu.uuid, error=str(error))
            self._refused[gpu.uuid] = error.reason
            return False
        if reason:
            self._refused[gpu.uuid] = reason
        return True

    def _take(self, event: Event) -> None:
        if event.kind == XID and event.gpu is not None:
            self._ledger.tell(event.gpu, event.data, NVML, self._clock())
        elif (event.gpu, event.kind) not in self._told:
            self._told.add((event.gpu, event.kind))
            what = "an Xid of a GPU that was not registered" if event.kind == XID else OTHER_EVENTS.get(event.kind, "?")
            log.warning("the driver tells of a GPU", uuid=event.gpu, what=what, data=event.data)

    def _recover(self, began: float) -> None:
        """A set that has lasted the longest back-off is taken for sound: until then the log stays silent."""
        if self._failing and self._clock() - began > self._settings.retry_seconds:
            self._failing = False
            log.info("the driver's events are waited for again")
