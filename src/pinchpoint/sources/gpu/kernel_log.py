"""Xid errors as the kernel log tells them: some of the gravest (79, 119, 120) reach no NVML event.

Reads only, from the end on, in a thread of its own that calls no driver. /dev/kmsg needs root or CAP_SYSLOG where
``kernel.dmesg_restrict`` is set. Formats: the kernel's Documentation/ABI/testing/dev-kmsg, and the ``NVRM: Xid`` lines
of NVIDIA's driver (``krcReportXid`` of its open kernel modules has the newest forms).
"""

from __future__ import annotations

import contextlib
import errno
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import structlog

from pinchpoint.snapshot import Absence, Reason
from pinchpoint.sources.gpu.log_tail import KMSG, follow
from pinchpoint.sources.gpu.xids import KERNEL, XidLedger, pci_address

log = structlog.get_logger(__name__)

RETRY_SECONDS = 30.0
BURST_SECONDS = 1.0  # one fault of a program prints a line per multiprocessor

_XID = re.compile(
    rb"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]{5,16})(?: [^)]{1,40})?\): (\d{1,4})\b(?:, *pid='?([^', ]{1,16}))?"
)
_RECORD = re.compile(rb"(\d{1,6}),\d+,\d+,[^;]{1,32};")  # facility and priority, number, microseconds, flags
_FACILITY_SHIFT = 3  # facility 0 is the kernel itself


class XidLine(NamedTuple):
    """What a line says: which GPU, which code, whose process (empty: it doesn't say)."""

    address: str
    code: int
    pid: bytes


def parse(line: bytes) -> XidLine | None:
    """The Xid that a line tells, ``None`` for any other line and for what a program wrote into /dev/kmsg itself."""
    match = _XID.search(line)
    if match is None:
        return None
    record, address = _RECORD.match(line), pci_address(match[1].decode())
    if address is None or (record and int(record[1]) >> _FACILITY_SHIFT):
        return None
    return XidLine(address, int(match[2]), match[3] or b"")


class KernelLog:
    """Tells ``ledger`` of each Xid in the log at ``path`` (/dev/kmsg, a FIFO, a file that grows).

    ``wanted`` is the operator's setting: a path; ``True`` for /dev/kmsg; ``None`` for /dev/kmsg if it can be read, and
    not a word if it can't; ``False`` for none.
    """

    def __init__(self, wanted: Path | bool | None, ledger: XidLedger, clock: Callable[[], float]) -> None:
        self._wanted, self._ledger, self._clock = wanted, ledger, clock
        self._path = wanted if isinstance(wanted, Path) else KMSG
        self._last: dict[XidLine, float] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kernel-log", daemon=True)
        self.following = False
        self.absence: Absence | None = None  # of a log that the operator asked for

    def start(self) -> None:
        if self._wanted is not False:
            self._thread.start()

    def end(self) -> None:
        """Ask the thread to end. Does not wait."""
        self._ending.set()

    def _run(self) -> None:
        while not self._ending.is_set():
            try:
                with contextlib.closing(follow(self._path, self._ending)) as lines:
                    for line in lines:
                        self.following, self.absence = True, None
                        if line:
                            self._take(line)
            except OSError as error:
                if self._wanted is None:
                    return
                self._refuse(error)
            finally:
                self.following = False
            self._ending.wait(RETRY_SECONDS)

    def _refuse(self, error: OSError) -> None:
        denied = error.errno in (errno.EACCES, errno.EPERM)
        remedy = "give pinchpoint CAP_SYSLOG" if denied else "mend gpu.kernel_log"
        detail = f"{self._path}: {error.strerror or error}; {remedy}, or set gpu.kernel_log to false"
        if self.absence is None:
            log.warning("the kernel log can't be read", detail=detail)
            reason = Reason.ACCESS_DENIED if denied else Reason.ERROR
            self.absence = Absence("gpu/kernel_log", reason, detail, self._clock())

    def _take(self, line: bytes) -> None:
        said = parse(line)
        if said is None:
            return
        now = self._clock()
        burst = said in self._last and now - self._last[said] < BURST_SECONDS
        self._last = {each: at for each, at in self._last.items() if now - at < BURST_SECONDS} | {said: now}
        if not burst:
            self._ledger.tell(said.address, said.code, KERNEL, now)
