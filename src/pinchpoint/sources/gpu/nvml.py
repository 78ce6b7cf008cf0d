"""The one door to NVML: what the rest of the project knows of ``pynvml``, its error codes and its traps.

Every function here may block for as long as the driver likes: call them from threads that nobody waits for. What the
error codes mean is in ``nvml_codes``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import pynvml

from pinchpoint.snapshot import GpuState, Reason
from pinchpoint.sources.gpu.calls import CallLedger
from pinchpoint.sources.gpu.nvml_codes import (
    CALL_REASONS,
    GPU_FAULTS,
    LIFECYCLE,
    NODE_FAULTS,
    NOTHING_FOUND,
    OPENING_FAULTS,
)

MEMORY_V2 = int(pynvml.nvmlMemory_v2)
EVERY_LINK = 2**32 - 1  # the scope of a field value that means the sum of all NVLinks

REMEMBER_SECONDS: Mapping[Reason, float] = {Reason.NOT_SUPPORTED: 3600.0, Reason.ACCESS_DENIED: 600.0}

_MOST_INSTANCES = 64  # cards have 7
_VALUE_MEMBERS = (  # by nvmlValueType_t, with their bits
    ("dVal", 53),
    ("uiVal", 32),
    ("ulVal", 64),
    ("ullVal", 64),
    ("sllVal", 64),
    ("siVal", 32),
    ("usVal", 16),
)

F = TypeVar("F", int, tuple[int, int])  # an nvmlFieldValue_t id, or with its scope (a link, say)
FieldAnswers = Mapping[int, float | Reason]


class _FieldValue(ctypes.Structure):
    """The binding's struct, which takes several times as long to read."""

    _fields_ = pynvml.c_nvmlFieldValue_t._fields_


class Versions(NamedTuple):
    """Of the driver and of NVML's library, which should be of one release."""

    driver: str | None
    library: str | None


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


def start(ledger: CallLedger) -> tuple[Versions, int]:
    """Initialise NVML; the versions and the count of GPUs. Pair with ``shutdown``. Raises LibraryDownError."""
    _node(ledger, "nvmlInit")
    try:
        versions = Versions(
            _version(ledger, "nvmlSystemGetDriverVersion"),
            _version(ledger, "nvmlSystemGetNVMLVersion"),
        )
        return versions, count(ledger)
    except LibraryDownError:
        shutdown(ledger)
        raise


def count(ledger: CallLedger) -> int:
    """How many GPUs NVML counts, those that are lost or may not be opened included. Raises LibraryDownError."""
    return int(_node(ledger, "nvmlDeviceGetCount"))


def shutdown(ledger: CallLedger) -> None:
    """Undo one ``start``. A failure is of no interest: the next start tells."""
    try:
        ledger.make("nvmlShutdown", pynvml.nvmlShutdown)
    except pynvml.NVMLError:
        return


def _version(ledger: CallLedger, call: str) -> str | None:
    try:
        return str(ledger.make(call, getattr(pynvml, call)))
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None


def reason_for(code: int) -> Reason:
    """Why one call has no answer, by its ``nvmlReturn_t``."""
    return CALL_REASONS.get(code, Reason.DRIVER_ERROR)


def _node(ledger: CallLedger, call: str) -> Any:
    try:
        return ledger.make(call, getattr(pynvml, call))
    except pynvml.NVMLError as error:
        raise _library_down(error.value, call) from error


def _library_down(code: int, call: str) -> LibraryDownError:
    reason, detail = NODE_FAULTS.get(code, (Reason.DRIVER_ERROR, "the driver answers with an error; check dmesg"))
    return LibraryDownError(reason, f"{detail} ({call}: NVML error {code})")


class NvmlGpu:
    """One GPU of one NVML generation. Raises GpuDownError when it can't be opened, LibraryDownError when NVML is gone.

    With the handle of a MIG ``instance``, every question is about that one.
    ``answers`` counts what it has answered, ever. ``bits`` is, by field value, the width that the driver gives it in:
    that of a counter's wrap.
    """

    def __init__(self, index: int, clock: Callable[[], float], ledger: CallLedger, instance: Any = None) -> None:
        self.index = index
        self.answers = 0
        self.bits: dict[int | tuple[int, int], int] = {}
        self._clock, self.ledger = clock, ledger
        self._refused: dict[tuple[object, ...], tuple[Reason, float]] = {}
        self.handle = instance or self._open()

    def _open(self) -> Any:
        opening = "nvmlDeviceGetHandleByIndex"
        try:
            return self.ledger.make(opening, pynvml.nvmlDeviceGetHandleByIndex, self.index)
        except pynvml.NVMLError as error:
            if error.value in LIFECYCLE:
                raise _library_down(error.value, opening) from error
            unknown = (GpuState.UNKNOWN, "NVML can't open it; in a container recreate it with its GPUs, else see dmesg")
            raise self._down(*OPENING_FAULTS.get(error.value, unknown), error.value, opening) from error

    def ask(self, call: str, *args: Any) -> Any:
        """What pynvml's ``call(handle, *args)`` returns, or the ``Reason`` why it has no answer.

        A GPU among ``args`` is its handle. What the GPU can't or won't tell isn't asked again for
        ``REMEMBER_SECONDS``. Raises GpuDownError, LibraryDownError.
        """
        key = (call, *(arg for arg in args if isinstance(arg, int | NvmlGpu)))
        if reason := self._remembered(key):
            return reason
        try:
            answer = self._call(call, *args)
        except pynvml.NVMLError as error:
            return self._refuse(key, error.value, call)
        except pynvml.NVMLLibraryMismatchError:
            return self._refuse(key, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, call)
        except UnicodeDecodeError:
            return Reason.INVALID
        self.answers += 1
        return answer

    def ask_first(self, calls: Iterable[str], *args: int) -> Any:
        """``ask`` the names of one thing in turn until one is supported."""
        answer: Any = Reason.NOT_SUPPORTED
        for call in calls:
            answer = self.ask(call, *args)
            if answer is not Reason.NOT_SUPPORTED:
                break
        return answer

    def ask_fields(self, ids: Iterable[F]) -> dict[F, float | Reason]:
        """Several field values in one driver call, each with its value or its ``Reason``.

        An id is a number, or a pair with its scope (an NVLink; ``EVERY_LINK`` is their sum).
        """
        answers: dict[F, float | Reason] = {}
        wanted = []
        for field in ids:
            if reason := self._remembered(("field", field)):
                answers[field] = reason
            else:
                wanted.append(field)
        if not wanted:
            return answers
        call = "nvmlDeviceGetFieldValues"
        try:
            scoped = [field if isinstance(field, tuple) else (field, 0) for field in wanted]
            values = (_FieldValue * len(wanted)).from_buffer(self._call(call, scoped))
        except pynvml.NVMLError as error:
            return answers | {field: self._refuse(("field", field), error.value, call) for field in wanted}
        return answers | {field: self._field(field, value) for field, value in zip(wanted, values, strict=True)}

    def ask_list(self, call: str, *args: int) -> list[Any] | Reason:
        """``ask`` for a list: none found is an empty one, and one that grows while it is read is read once more.

        ``args`` are of the moment (a timestamp): what is refused is refused with whatever they are.
        """
        if reason := self._remembered((call,)):
            return reason
        for last in (False, True):
            try:
                answer = list(self._call(call, *args))
            except pynvml.NVMLError as error:
                if error.value == pynvml.NVML_ERROR_INSUFFICIENT_SIZE and not last:
                    continue
                if error.value not in NOTHING_FOUND:
                    return self._refuse((call,), error.value, call)
                answer = []
            break
        self.answers += 1
        return answer

    def instances(self) -> dict[int, NvmlGpu] | Reason:
        """The MIG devices by their index on this GPU, each to be asked like a GPU, and in this cycle only.

        Their handles are re-used for others when the card is split anew. An index without a device is passed over.
        """
        places = self.ask("nvmlDeviceGetMaxMigDeviceCount")
        if isinstance(places, Reason):
            return places
        call = "nvmlDeviceGetMigDeviceHandleByIndex"
        found: dict[int, NvmlGpu] = {}
        refused: Reason | None = None
        for index in range(min(places, _MOST_INSTANCES)):
            try:
                handle = self._call(call, index)
            except pynvml.NVMLError as error:
                if error.value not in NOTHING_FOUND:
                    refused = self._refuse((call, index), error.value, call)
            else:
                found[index] = NvmlGpu(self.index, self._clock, self.ledger, handle)
        return found if found or refused is None else refused

    def forget(self) -> None:
        """Ask again for everything that was refused: the GPU was changed under us."""
        self._refused.clear()

    def _field(self, field: int | tuple[int, int], value: Any) -> float | Reason:
        self.ledger.add_field(str(value.fieldId), value.latencyUsec * 1e-6)
        if value.nvmlReturn != pynvml.NVML_SUCCESS:
            return self._refuse(("field", field), value.nvmlReturn, f"field {value.fieldId}")
        if not 0 <= value.valueType < len(_VALUE_MEMBERS):
            return Reason.INVALID
        self.answers += 1
        member, self.bits[field] = _VALUE_MEMBERS[value.valueType]
        number: float = getattr(value.value, member)
        return number

    def _call(self, call: str, *args: object) -> Any:
        handles = (arg.handle if isinstance(arg, NvmlGpu) else arg for arg in args)
        return self.ledger.make(call, getattr(pynvml, call), self.handle, *handles)

    def _remembered(self, key: tuple[object, ...]) -> Reason | None:
        reason, until = self._refused.get(key, (None, 0.0))
        return reason if self._clock() < until else None

    def _refuse(self, key: tuple[object, ...], code: int, call: str) -> Reason:
        if code in LIFECYCLE:
            raise _library_down(code, call)
        if code in GPU_FAULTS:
            raise self._down(*GPU_FAULTS[code], code, call)
        reason = reason_for(code)
        if reason in REMEMBER_SECONDS:
            self._refused[key] = reason, self._clock() + REMEMBER_SECONDS[reason]
        return reason

    def _down(self, state: GpuState, detail: str, code: int, call: str) -> GpuDownError:
        return GpuDownError(state, f"GPU {self.index}: {detail} ({call}: NVML error {code})")
