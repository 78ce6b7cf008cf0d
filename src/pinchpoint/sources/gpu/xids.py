"""The Xid errors of this node's GPUs, counted once each however many tell of them."""

from __future__ import annotations

import re
import threading
from collections import deque
from dataclasses import replace

import structlog

from pinchpoint.snapshot import GpuReading, Reason, XidCount

log = structlog.get_logger(__name__)

MATCH_SECONDS = 5.0  # within it, an event and a line of the kernel log are about one error
MAX_GPUS = 128  # addresses that NVML doesn't show included
MAX_CODES = 64  # per GPU; a sick card shows a handful
MAX_UNMATCHED = 256  # per code
OTHER = "other"  # the codes beyond MAX_CODES
NVML, KERNEL = "nvml", "kernel"

_PCI = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?", re.IGNORECASE)


def pci_address(text: str) -> str | None:
    """``0000:3b:00`` of any spelling (``00000000:3B:00.0``, ``3b:00``); ``None`` when it is none."""
    match = _PCI.fullmatch(text.strip())
    return f"{int(match[1] or '0', 16):04x}:{match[2]}:{match[3]}".lower() if match else None


class XidLedger:
    """Counts by (GPU, code, source) since the process started; a GPU that is lost keeps its counts.

    Both sources may tell of one error, in either order: whoever is first counts, the other's telling is matched to it
    if it comes within ``MATCH_SECONDS``. Errors at an address that NVML doesn't show (yet) are held for the GPU that
    turns up there. Any thread may tell; one asks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}  # GPU -> (code, source) -> total, last
        self._unmatched: dict[tuple[str, str, str], deque[float]] = {}  # (GPU, code, source) -> when
        self._uuids: dict[str, str] = {}  # by address
        self._shown: dict[str, tuple[GpuReading, Reason | None, GpuReading]] = {}

    def tell(self, gpu: str, code: int, source: str, at: float) -> None:
        """One error of a GPU (its UUID, or its PCI address), seen at ``at`` by ``source``."""
        with self._lock:
            who = self._uuids.get(gpu, gpu)
            stranger = source == KERNEL and gpu not in self._uuids
            if stranger and who not in self._counts and len(self._counts) >= MAX_GPUS:
                return
            counts = self._counts.setdefault(who, {})
            codes = {xid for xid, _ in counts}
            xid = str(code) if str(code) in codes or len(codes) < MAX_CODES else OTHER
            if self._is_told_already(who, xid, KERNEL if source == NVML else NVML, at):
                return
            self._unmatched.setdefault((who, xid, source), deque(maxlen=MAX_UNMATCHED)).append(at)
            counts[xid, source] = counts.get((xid, source), (0.0, at))[0] + 1, at
        if xid not in codes:
            log.warning("a GPU's first Xid of its kind", gpu=who, xid=xid, source=source)

    def know(self, gpu: GpuReading) -> None:
        """Which GPU is at which address; what was held for the address becomes the GPU's."""
        address = pci_address(gpu.pci_bus_id or "")
        if not address or self._uuids.get(address) == gpu.uuid:
            return
        with self._lock:
            self._uuids[address] = gpu.uuid
            for (xid, source), (total, last) in self._counts.pop(address, {}).items():
                counts = self._counts.setdefault(gpu.uuid, {})
                before, seen = counts.get((xid, source), (0.0, last))
                counts[xid, source] = before + total, max(seen, last)
                if moments := self._unmatched.pop((address, xid, source), None):
                    self._unmatched[gpu.uuid, xid, source] = moments

    def onto(self, gpu: GpuReading, untold: Reason | None) -> GpuReading:
        """The reading with its Xids, the same object while nothing changes.

        ``untold`` is why some may be missing. It is among what is unavailable then: a count that stands still for want
        of a source is no good news.
        """
        if not gpu.uuid:
            return gpu
        self.know(gpu)
        reading, why, shown = self._shown.get(gpu.uuid, (None, None, None))
        with self._lock:
            counts = sorted(self._counts.get(gpu.uuid, {}).items())
        xids = tuple(XidCount(xid=xid, source=source, total=n, last_at=last) for (xid, source), (n, last) in counts)
        if shown and shown.xids == xids:
            if reading is gpu and why is untold:
                return shown
            xids, totals = shown.xids, shown.xid_errors_total
        else:
            codes = dict.fromkeys(count.xid for count in xids)
            totals = {xid: sum(count.total for count in xids if count.xid == xid) for xid in codes}
        missing = {**gpu.unavailable, "xid_errors_total": str(untold)} if untold and gpu.up else gpu.unavailable
        shown = replace(gpu, xids=xids, xid_errors_total=totals, unavailable=missing)
        self._shown[gpu.uuid] = gpu, untold, shown
        return shown

    def _is_told_already(self, who: str, xid: str, by: str, at: float) -> bool:
        """Whether the other source has told of it; takes that telling away, for it stands for one error only."""
        moments = self._unmatched.get((who, xid, by))
        while moments:
            if at - moments.popleft() <= MATCH_SECONDS:
                return True
        return False
