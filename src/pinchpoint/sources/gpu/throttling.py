"""What holds one GPU's clocks down, now and in sum."""

from collections.abc import Mapping

from pinchpoint.snapshot import Reason, ThrottleReason
from pinchpoint.sources.gpu.nvml import FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier, number
from pinchpoint.sources.gpu.throttle import ThrottleLedger

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
NANOSECOND_FIELDS: Mapping[int, ThrottleReason] = {  # NVML_FI_DEV_PERF_POLICY_*, …_CLOCKS_EVENT_REASON_*
    74: ThrottleReason.SW_POWER_CAP,
    76: ThrottleReason.SYNC_BOOST,
    269: ThrottleReason.SW_THERMAL_SLOWDOWN,
    270: ThrottleReason.HW_THERMAL_SLOWDOWN,
    271: ThrottleReason.HW_POWER_BRAKE,
}
_seconds = number(1e-9, 1e9)  # 30 years: a counter beyond it is a blank


class Throttling:
    """The reasons that this card knows of, as 0 or 1, and their seconds by the ledger."""

    tier = Tier.FAST
    fields = tuple(NANOSECOND_FIELDS)

    def __init__(self, nvml: NvmlGpu, ledger: ThrottleLedger) -> None:
        self._nvml, self._ledger = nvml, ledger
        supported = nvml.ask_first(SUPPORTED_REASONS)
        self._bits = {
            reason: bit for reason, bit in REASON_BITS.items() if isinstance(supported, Reason) or supported & bit
        }

    def read(self, at: float, fields: FieldAnswers, _so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """Without a reason read, the seconds still stand: those of the driver, and our own sum so far."""
        reasons = self._nvml.ask_first(REASONS)
        active = {} if isinstance(reasons, Reason) else {r: float(bool(reasons & bit)) for r, bit in self._bits.items()}
        told = {r: answer for i, r in NANOSECOND_FIELDS.items() if not isinstance(answer := fields[i], Reason)}
        counted = {r: s for r, value in told.items() if not isinstance(s := _seconds(value), Reason)}
        seconds = self._ledger.account(at, active, counted)
        return {
            "throttle_active": reasons if isinstance(reasons, Reason) else active,
            "throttle_seconds_total": seconds,
        }
