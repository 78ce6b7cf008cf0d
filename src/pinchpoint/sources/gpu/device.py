"""One GPU's cycle: which NVML call fills which field of a reading, in which unit, within which range.

A value outside its range is dropped, never clamped: drivers answer blanks such as 2^32-1 or 808334905 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.snapshot import GpuReading, GpuState, Reason, ThrottleReason
from pinchpoint.sources.gpu.nvml import MEMORY_V2, GpuDownError, NvmlGpu
from pinchpoint.sources.gpu.throttle import ThrottleLedger


@dataclass(frozen=True, slots=True)
class Number:
    """``calls`` are names of one thing, newest first; times ``scale`` it is in base units, at most ``highest``."""

    calls: tuple[str, ...]
    args: tuple[int, ...] = ()
    scale: float = 1.0
    highest: float = 1.0
    above: float = -1.0  # exclusive


_DOMAINS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}  # nvmlClockType_t
_MEGAHERTZ, _TEN_GIGAHERTZ = 1e6, 1e10
_PERCENT = 0.01
_LONG_SECONDS = 1e9  # 30 years: a counter beyond it is a blank

# A dotted name is an entry of a field that is a mapping.
EACH_CYCLE: Mapping[str, Number] = {
    "power_watts": Number(("nvmlDeviceGetPowerUsage",), scale=1e-3, highest=1e4),
    "power_limit_watts": Number(("nvmlDeviceGetEnforcedPowerLimit",), scale=1e-3, highest=1e4, above=0),
    "energy_joules_total": Number(("nvmlDeviceGetTotalEnergyConsumption",), scale=1e-3, highest=1e13),
    "temperature_celsius.gpu": Number(
        ("nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"), (0,), highest=150, above=0
    ),
    **{
        f"clock_hertz.{domain}": Number(("nvmlDeviceGetClockInfo",), (code,), _MEGAHERTZ, _TEN_GIGAHERTZ)
        for domain, code in _DOMAINS.items()
    },
}
ONCE: Mapping[str, Number] = {
    f"clock_max_hertz.{domain}": Number(("nvmlDeviceGetMaxClockInfo",), (code,), _MEGAHERTZ, _TEN_GIGAHERTZ, above=0)
    for domain, code in _DOMAINS.items()
}
REASONS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
SUPPORTED_REASONS = ("nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedClocksThrottleReasons")
REASON_BITS: Mapping[ThrottleReason, int] = {  # nvmlClocksEventReasons
    ThrottleReason.APPLICATIONS_CLOCKS: 0x002,
    ThrottleReason.SW_POWER_CAP: 0x004,
    ThrottleReason.HW_SLOWDOWN: 0x008,
    ThrottleReason.SYNC_BOOST: 0x010,
    ThrottleReason.SW_THERMAL_SLOWDOWN: 0x020,
    ThrottleReason.HW_THERMAL_SLOWDOWN: 0x040,
    ThrottleReason.HW_POWER_BRAKE: 0x080,
    ThrottleReason.DISPLAY_CLOCKS: 0x100,
}
MEMORY_TEMPERATURE_FIELD = 82  # NVML_FI_DEV_MEMORY_TEMP; 0 on cards without HBM
REASON_NANOSECOND_FIELDS: Mapping[int, ThrottleReason] = {  # NVML_FI_DEV_PERF_POLICY_*, …_CLOCKS_EVENT_REASON_*
    74: ThrottleReason.SW_POWER_CAP,
    76: ThrottleReason.SYNC_BOOST,
    269: ThrottleReason.SW_THERMAL_SLOWDOWN,
    270: ThrottleReason.HW_THERMAL_SLOWDOWN,
    271: ThrottleReason.HW_POWER_BRAKE,
}


class Device:
    """One opened GPU. ``read`` makes the calls of one cycle and never waits for anything else.

    Both constructor and ``read`` raise GpuDownError and LibraryDownError. ``ledger`` gives the throttle ledger of a
    UUID, which outlives this object.
    """

    def __init__(self, nvml: NvmlGpu, driver: str | None, ledger: Callable[[str], ThrottleLedger]) -> None:
        self._nvml = nvml
        uuid = nvml.ask("nvmlDeviceGetUUID")
        if isinstance(uuid, Reason):
            raise GpuDownError(GpuState.UNKNOWN, f"GPU {nvml.index}: it doesn't tell its UUID ({uuid}); check dmesg")
        name, pci = nvml.ask("nvmlDeviceGetName"), nvml.ask("nvmlDeviceGetPciInfo")
        self._identity: dict[str, Any] = {
            "gpu": str(nvml.index),
            "uuid": uuid,
            "driver": driver,
            "name": None if isinstance(name, Reason) else name,
            "pci_bus_id": None if isinstance(pci, Reason) else pci.busId,
        }
        self._ledger = ledger(uuid)
        self._last: dict[str, Any] = {}  # the fields of the last reading
        self._once = {field: self._number(number) for field, number in ONCE.items()}
        supported = self._first(SUPPORTED_REASONS)
        self._bits = {
            reason: bit for reason, bit in REASON_BITS.items() if isinstance(supported, Reason) or supported & bit
        }

    @property
    def identity(self) -> GpuReading:
        """Who this is, without a reading."""
        return GpuReading(**self._identity, at=0.0, up=False)

    def read(self, at: float) -> GpuReading:
        """One cycle. ``at`` is its start."""
        answers = {field: self._number(number) for field, number in EACH_CYCLE.items()}
        answers |= self._utilization() | self._memory()
        reasons = self._first(REASONS)
        fields = self._nvml.ask_fields((MEMORY_TEMPERATURE_FIELD, *REASON_NANOSECOND_FIELDS))
        answers["temperature_celsius.memory"] = _within(fields[MEMORY_TEMPERATURE_FIELD], 1.0, 150, above=0)
        if all(isinstance(answer, Reason) for answer in answers.values()) and Reason.DRIVER_ERROR in answers.values():
            raise GpuDownError(GpuState.UNKNOWN, f"GPU {self._nvml.index}: every call fails with an error; check dmesg")
        throttling = self._throttling(at, reasons, fields)
        if isinstance(reasons, Reason):
            answers["throttle_active"] = reasons
        answers |= self._once
        reading = {
            **self._identity,
            **_nested({field: answer for field, answer in answers.items() if not isinstance(answer, Reason)}),
            **throttling,
            "unavailable": {field: str(answer) for field, answer in answers.items() if isinstance(answer, Reason)},
        }
        # What did not change stays the same object: a window holds hundreds of readings of each GPU.
        self._last = {f: last if (last := self._last.get(f)) == value else value for f, value in reading.items()}
        return GpuReading(at=at, **self._last)

    def _throttling(self, at: float, reasons: int | Reason, fields: Mapping[int, float | Reason]) -> dict[str, Any]:
        active = {} if isinstance(reasons, Reason) else {r: float(bool(reasons & bit)) for r, bit in self._bits.items()}
        seconds = {r: _within(fields[i], 1e-9, _LONG_SECONDS) for i, r in REASON_NANOSECOND_FIELDS.items()}
        counted = {reason: value for reason, value in seconds.items() if not isinstance(value, Reason)}
        return {"throttle_active": active, "throttle_seconds_total": self._ledger.account(at, active, counted)}

    def _utilization(self) -> dict[str, float | Reason]:
        rates = self._nvml.ask("nvmlDeviceGetUtilizationRates")
        gpu, memory = (rates, rates) if isinstance(rates, Reason) else (rates.gpu, rates.memory)
        return {
            "utilization_ratio": _within(gpu, _PERCENT, 1),
            "memory_controller_utilization_ratio": _within(memory, _PERCENT, 1),
        }

    def _memory(self) -> dict[str, float | Reason]:
        """By the second version of the struct only: the first counts as used what the driver reserves."""
        memory = self._nvml.ask("nvmlDeviceGetMemoryInfo", MEMORY_V2)
        if isinstance(memory, Reason):
            return dict.fromkeys(("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes"), memory)
        return {
            "memory_total_bytes": _within(memory.total, 1.0, 1e14, above=0),
            "memory_used_bytes": _within(memory.used, 1.0, memory.total),
            "memory_reserved_bytes": _within(memory.reserved, 1.0, memory.total),
        }

    def _number(self, number: Number) -> float | Reason:
        return _within(self._first(number.calls, *number.args), number.scale, number.highest, number.above)

    def _first(self, calls: tuple[str, ...], *args: int) -> Any:
        answer: Any = Reason.NOT_SUPPORTED
        for call in calls:
            answer = self._nvml.ask(call, *args)
            if answer is not Reason.NOT_SUPPORTED:
                break
        return answer


def _within(raw: float | Reason, scale: float, highest: float, above: float = -1.0) -> float | Reason:
    """``raw`` in base units, or why not. ``highest`` and ``above`` are in base units too."""
    if isinstance(raw, Reason):
        return raw
    value = round(raw * scale, 9)  # 0.41, not 0.41000000000000003
    return value if above < value <= highest and value >= 0 else Reason.INVALID


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """``{"clock_hertz.sm": 1}`` as ``{"clock_hertz": {"sm": 1}}``."""
    nested: dict[str, Any] = {}
    for name, value in values.items():
        field, _, key = name.partition(".")
        if key:
            nested.setdefault(field, {})[key] = value
        else:
            nested[field] = value
    return nested
