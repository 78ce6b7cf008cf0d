"""The one door to NVML: what the rest of the project knows of ``pynvml``, its error codes and its traps.

Every function here may block for as long as the driver likes: call them from threads that nobody waits for.
Meanings of the codes: NVML API reference, ``nvmlReturn_t``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pynvml

from pinchpoint.snapshot import GpuState, Reason

MEMORY_V2 = int(pynvml.nvmlMemory_v2)

REMEMBER_SECONDS: Mapping[Reason, float] = {Reason.NOT_SUPPORTED: 3600.0, Reason.ACCESS_DENIED: 600.0}

_NODE_FAULTS: Mapping[int, tuple[Reason, str]] = {
    pynvml.NVML_ERROR_UNINITIALIZED: (Reason.DRIVER_ERROR, "NVML lost the driver; it is started again"),
    pynvml.NVML_ERROR_NO_PERMISSION: (
        Reason.ACCESS_DENIED,
        "the NVIDIA device files may not be opened; run as a user who may, or pass the GPUs to the container",
    ),
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: (
        Reason.NO_DRIVER,
        "the NVIDIA kernel driver is not loaded; load it (modprobe nvidia), it is tried again by itself",
    ),
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
        Reason.NO_LIBRARY,
        "libnvidia-ml.so.1 was not found; install the NVIDIA driver, or pass it to the container (--gpus all)",
    ),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: (
        Reason.ACCESS_DENIED,
        "the operating system blocks the NVIDIA devices (cgroup); recreate the container with its GPUs",
    ),
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
        Reason.DRIVER_MISMATCH,
        "the driver was upgraded under this process, which can't change its library; restart pinchpoint",
    ),
    pynvml.NVML_ERROR_GPU_NOT_FOUND: (Reason.NO_DEVICES, "the driver sees no GPU; check lspci and dmesg"),
    pynvml.NVML_ERROR_UNKNOWN: (
        Reason.DRIVER_ERROR,
        "NVML answers Unknown Error; in a container recreate it with its GPUs, on a host check dmesg",
    ),
}
# The codes that mean the same from whichever call they come.
_LIFECYCLE = frozenset(
    {
        pynvml.NVML_ERROR_UNINITIALIZED,
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    }
)
_GPU_FAULTS: Mapping[int, tuple[GpuState, str]] = {
    pynvml.NVML_ERROR_GPU_IS_LOST: (
        GpuState.LOST,
        "it has fallen off the bus; look for its Xid in dmesg, drain the node, reboot or reseat it",
    ),
    pynvml.NVML_ERROR_RESET_REQUIRED: (
        GpuState.RESET_REQUIRED,
        "it must be reset; stop what uses it, then nvidia-smi --gpu-reset",
    ),
    pynvml.NVML_ERROR_OPERATING_SYSTEM: (
        GpuState.ACCESS_DENIED,
        "the operating system blocks it (cgroup); recreate the container with its GPUs",
    ),
}
_OPENING_FAULTS: Mapping[int, tuple[GpuState, str]] = {
    **_GPU_FAULTS,
    pynvml.NVML_ERROR_NO_PERMISSION: (
        GpuState.ACCESS_DENIED,
        "its device file may not be opened; run as a user who may, or pass it to the container",
    ),
    **dict.fromkeys(
        (pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_GPU_NOT_FOUND),
        (GpuState.LOST, "NVML doesn't enumerate it any more; look for its Xid in dmesg"),
    ),
}
_CALL_REASONS: Mapping[int, Reason] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_DEPRECATED: Reason.NOT_SUPPORTED,
    pynvml.NVML_ERROR_NO_PERMISSION: Reason.ACCESS_DENIED,
    pynvml.NVML_ERROR_TIMEOUT: Reason.TIMEOUT,
}
_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by nvmlValueType_t


class LibraryDownError(Exception):
    """NVML as a whole does not answer: ``reason``, and ``detail`` with the remedy for people."""

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason, self.detail = reason, detail


class GpuDownError(Exception):
    """One GPU does not answer, the others may: ``state``, and ``detail`` with the remedy for people."""

    def __init__(self, state: GpuState, detail: str) -> None:
        super().__init__(detail)
        self.state, self.detail = state, detail


def start() -> tuple[str | None, int]:
    """Initialise NVML; its driver's version and count of GPUs. Pair with ``shutdown``. Raises LibraryDownError."""
    _node("nvmlInit")
    try:
        return _driver_version(), count()
    except LibraryDownError:
        shutdown()
        raise


def count() -> int:
    """How many GPUs NVML counts, those that are lost or may not be opened included. Raises LibraryDownError."""
    return int(_node("nvmlDeviceGetCount"))


def shutdown() -> None:
    """Undo one ``start``. A failure is of no interest: the next start tells."""
    try:
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return


def _driver_version() -> str | None:
    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def reason_for(code: int) -> Reason:
    """Why one call has no answer, by its ``nvmlReturn_t``."""
    return _CALL_REASONS.get(code, Reason.DRIVER_ERROR)


def _node(call: str) -> Any:
    try:
        return getattr(pynvml, call)()
    except pynvml.NVMLError as error:
        raise _library_down(error.value, call) from error


def _library_down(code: int, call: str) -> LibraryDownError:
    reason, detail = _NODE_FAULTS.get(code, (Reason.DRIVER_ERROR, "the driver answers with an error; check dmesg"))
    return LibraryDownError(reason, f"{detail} ({call}: NVML error {code})")


class NvmlGpu:
    """One GPU of one NVML generation. Raises GpuDownError when it can't be opened, LibraryDownError when NVML is gone.

    ``calling`` names the call in progress, for whoever watches from another thread.
    """

    def __init__(self, index: int, clock: Callable[[], float]) -> None:
        self.index = index
        self.calling = "nvmlDeviceGetHandleByIndex"
        self._clock = clock
        self._refused: dict[tuple[object, ...], tuple[Reason, float]] = {}
        try:
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        except pynvml.NVMLError as error:
            if error.value in _LIFECYCLE:
                raise _library_down(error.value, self.calling) from error
            unknown = (GpuState.UNKNOWN, "NVML can't open it; in a container recreate it with its GPUs, else see dmesg")
            raise self._down(*_OPENING_FAULTS.get(error.value, unknown), error.value) from error

    def ask(self, call: str, *args: int) -> Any:
        """What pynvml's ``call(handle, *args)`` returns, or the ``Reason`` why it has no answer.

        What the GPU can't or won't tell isn't asked again for ``REMEMBER_SECONDS``. Raises GpuDownError,
        LibraryDownError.
        """
        key = (call, *args)
        if reason := self._remembered(key):
            return reason
        try:
            return self._call(call, *args)
        except pynvml.NVMLError as error:
            return self._refuse(key, error.value, call)
        except pynvml.NVMLLibraryMismatchError:
            return self._refuse(key, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, call)
        except UnicodeDecodeError:
            return Reason.INVALID

    def ask_fields(self, ids: Iterable[int]) -> dict[int, float | Reason]:
        """Several ``nvmlFieldValue_t`` in one driver call, each with its value or its ``Reason``."""
        answers: dict[int, float | Reason] = {}
        wanted = []
        for field_id in ids:
            if reason := self._remembered(("field", field_id)):
                answers[field_id] = reason
            else:
                wanted.append(field_id)
        if not wanted:
            return answers
        try:
            values = self._call("nvmlDeviceGetFieldValues", wanted)
        except pynvml.NVMLError as error:
            return answers | {i: self._refuse(("field", i), error.value, "nvmlDeviceGetFieldValues") for i in wanted}
        return answers | {value.fieldId: self._field(value) for value in values}

    def _field(self, value: Any) -> float | Reason:
        if value.nvmlReturn != pynvml.NVML_SUCCESS:
            return self._refuse(("field", value.fieldId), value.nvmlReturn, f"field {value.fieldId}")
        if not 0 <= value.valueType < len(_VALUE_MEMBERS):
            return Reason.INVALID
        number: float = getattr(value.value, _VALUE_MEMBERS[value.valueType])
        return number

    def _call(self, call: str, *args: object) -> Any:
        self.calling = call
        return getattr(pynvml, call)(self._handle, *args)

    def _remembered(self, key: tuple[object, ...]) -> Reason | None:
        reason, until = self._refused.get(key, (None, 0.0))
        return reason if self._clock() < until else None

    def _refuse(self, key: tuple[object, ...], code: int, call: str) -> Reason:
        if code in _LIFECYCLE:
            raise _library_down(code, call)
        if code in _GPU_FAULTS:
            raise self._down(*_GPU_FAULTS[code], code)
        reason = reason_for(code)
        if reason in REMEMBER_SECONDS:
            self._refused[key] = reason, self._clock() + REMEMBER_SECONDS[reason]
        return reason

    def _down(self, state: GpuState, detail: str, code: int) -> GpuDownError:
        return GpuDownError(state, f"GPU {self.index}: {detail} ({self.calling}: NVML error {code})")
