"""One GPU's thread: reads it every interval and leaves the outcome where anybody can pick it up without waiting."""

from __future__ import annotations

import threading
from dataclasses import replace

import structlog

from pinchpoint.snapshot import GpuReading, GpuState
from pinchpoint.sources.gpu.device import Device
from pinchpoint.sources.gpu.nvml import GpuDownError, LibraryDownError, NvmlGpu, Versions
from pinchpoint.sources.gpu.site import Site

log = structlog.get_logger(__name__)


class Worker:
    """Reads GPU ``index`` in a daemon thread until ``end``. Nothing queues behind a call that hangs.

    ``previous`` is what a former generation last said of this index, served until this one has something to say.
    """

    def __init__(self, index: int, versions: Versions, site: Site, previous: GpuReading | None = None) -> None:
        self.index = index
        self.latest = previous
        self.library_fault: LibraryDownError | None = None
        self.duration_seconds: float | None = None
        self._versions, self._site, self._settings, self._clock = versions, site, site.settings, site.clock
        self._calls = site.calls.ledger(f"gpu-{index}", str(index))
        self._identity = previous or GpuReading(gpu=str(index), uuid="", at=0.0, up=False)
        self._device: Device | None = None
        self._read_at: float | None = None  # the last cycle that gave a reading
        self._busy_since: float | None = site.clock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"nvml-gpu-{index}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Ask the thread to end after the call in progress. Does not wait."""
        self._ending.set()

    def ended(self) -> bool:
        return not self._thread.is_alive()

    def hung(self, now: float) -> bool:
        """Whether the cycle in progress has taken longer than the deadline."""
        began = self._busy_since
        return began is not None and now - began > self._settings.deadline_seconds

    def view(self, now: float) -> GpuReading | None:
        """What there is to say of this GPU at ``now``; ``None`` before its first cycle has ended."""
        latest, began = self.latest, self._busy_since
        who = latest or self._identity
        if self.hung(now) and began is not None:
            call, _ = self._calls.in_progress or ("the cycle", began)
            limit = self._settings.deadline_seconds
            detail = f"{call} has not returned within {limit:g} s; look for an Xid in dmesg, then reset or reboot"
            return down(who, GpuState.HUNG, f"GPU {self.index}: {detail}", began)
        if latest and latest.up and now - latest.at > self._settings.fresh_for_seconds:
            detail = f"a reading takes longer than {self._settings.fresh_for_seconds:g} s; look for an Xid in dmesg"
            return down(latest, GpuState.HUNG, f"GPU {self.index}: {detail}", latest.at)
        return latest

    def _run(self) -> None:
        try:
            self._read_until_the_end()
        finally:
            self._close()

    def _read_until_the_end(self) -> None:
        while not self._ending.is_set():
            began = self._busy_since = self._clock()
            try:
                self.latest = self._read(began)
            except LibraryDownError as fault:
                self.library_fault, self._busy_since = fault, None
                return
            except GpuDownError as fault:
                self._lose(fault.state, fault.detail, began)
            except Exception:  # the thread's one guard: a defect of ours must not look like a hang of the GPU
                detail = f"GPU {self.index}: a defect of pinchpoint; see its log"
                if self.latest is None or self.latest.detail != detail:
                    log.exception("reading a GPU failed", gpu=self.index)
                self._lose(GpuState.UNKNOWN, detail, began)
            ended = self._clock()
            self.duration_seconds, self._busy_since = ended - began, None
            up = self.latest is not None and self.latest.up
            pause = self._settings.interval_seconds if up else self._settings.retry_seconds
            self._ending.wait(max(0.0, began + pause - ended))

    def _read(self, at: float) -> GpuReading:
        if self._device is None:
            self._device = Device(NvmlGpu(self.index, self._clock, self._calls), self._versions, self._site)
            self._identity = self._device.identity
        if self._read_at is not None:
            due = int((at - self._read_at) / self._settings.interval_seconds + 0.5)
            self._device.history.missed_cycles += max(0, due - 1)
        reading = self._device.read(at)
        self._read_at = at
        return reading

    def _lose(self, state: GpuState, detail: str, at: float) -> None:
        """The next attempt opens the GPU anew: after a reset the old handle stays dead."""
        action = self._device.recovery_action() if self._device and state is GpuState.RESET_REQUIRED else None
        self._close()
        lost = down(self.latest or self._identity, state, detail, at)
        self.latest = replace(lost, recovery_action=action) if action else lost

    def _close(self) -> None:
        if self._device:
            self._device.close()
        self._device = self._read_at = None


# Who it is, and what it counted until then.
_KEPT = (
    "gpu",
    "uuid",
    "name",
    "pci_bus_id",
    "minor_number",
    "driver",
    "nvml",
    "architecture",
    "memory_model",
    "virtualization",
    "energy_joules_total",
    "throttle_seconds_total",
    "ecc_errors_total",
    "pcie_replay_total",
    "xid_errors_total",
    "xids",
    "last_success_at",
    "missed_cycles_total",
    "invalid_samples_total",
)


def down(who: GpuReading, state: GpuState, detail: str, at: float) -> GpuReading:
    """A GPU that does not answer: its identity and its counters stay, its readings are gone."""
    kept = {field: getattr(who, field) for field in _KEPT}
    asked_for = None if who.up else who.recovery_action  # by the driver, when it was lost
    return GpuReading(**kept, at=at, up=False, state=state, detail=detail, recovery_action=asked_for)
