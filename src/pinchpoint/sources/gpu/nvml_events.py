"""The event leaf of the door to NVML: a set that GPUs are registered with, and the wait for their events."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_void_p, cast
from types import TracebackType
from typing import Any, NamedTuple, Self

import pynvml

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.calls import CallLedger
from pinchpoint.sources.gpu.nvml import reason_for

XID = int(pynvml.nvmlEventTypeXidCriticalError)
# Beside Xids, whatever of these a GPU supports: the log says when they came.
OTHER_EVENTS: Mapping[int, str] = {
    pynvml.nvmlEventTypeSingleBitEccErrorStorm: "a storm of correctable memory errors",
    pynvml.nvmlEventTypeDramRetirementFailure: "memory that can't be retired",
    pynvml.nvmlEventTypeGpuUnavailableError: "the GPU is unavailable",
    pynvml.nvmlEventTypeGpuRecoveryAction: "another recovery action is due",
}
_GONE = (
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
)


class EventsError(Exception):
    """A call failed. ``gone``: because NVML as a whole is, which others tell; ``spoilt``: the set is to be freed."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: NVML error {code}")
        self.reason = reason_for(code)
        self.gone, self.spoilt = code in _GONE, code == pynvml.NVML_ERROR_UNKNOWN


class Event(NamedTuple):
    """What a GPU told: ``gpu`` is the key it was registered by, ``None`` when the driver names one that was not."""

    gpu: str | None
    kind: int
    data: int  # of an Xid: its code


class EventSet:
    """One event set of the driver; leaving the ``with`` block frees it. For one thread."""

    def __init__(self, ledger: CallLedger) -> None:
        self._ledger = ledger
        self._set = self._call("nvmlEventSetCreate")
        self._gpus: dict[int | None, str] = {}  # by the handle's address: after a loss the handle itself can't be asked

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._call("nvmlEventSetFree", self._set)
        except EventsError:
            return  # as dead as the driver that had it

    def __len__(self) -> int:
        return len(self._gpus)

    def register(self, index: int, key: str) -> Reason | None:
        """Have the GPU at ``index`` tell its Xids from now on, or say why it won't.

        Raises EventsError when the set is of no use any more.
        """
        try:
            handle = self._call("nvmlDeviceGetHandleByIndex", index)
            supported = self._call("nvmlDeviceGetSupportedEventTypes", handle)
            if not supported & XID:
                return Reason.NOT_SUPPORTED
            wanted = XID | sum(bit for bit in OTHER_EVENTS if supported & bit)
            self._call("nvmlDeviceRegisterEvents", handle, wanted, self._set)
        except EventsError as error:
            if error.gone or error.spoilt:
                raise
            return error.reason
        self._gpus[_address(handle)] = key
        return None

    def wait(self, milliseconds: int) -> Event | None:
        """The next event, or ``None`` when there is none within that time. Raises EventsError."""
        try:
            event = pynvml.nvmlEventSetWait_v2(self._set, milliseconds)  # not in the ledger: waiting is no cost
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_TIMEOUT:
                return None
            raise EventsError("nvmlEventSetWait_v2", error.value) from error
        return Event(self._gpus.get(_address(event.device)), int(event.eventType), int(event.eventData))

    def _call(self, call: str, *args: Any) -> Any:
        try:
            return self._ledger.make(call, getattr(pynvml, call), *args)
        except pynvml.NVMLError as error:
            raise EventsError(call, error.value) from error


def _address(handle: Any) -> int | None:
    return cast(handle, c_void_p).value
