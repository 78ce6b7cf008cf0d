"""How classes look and what reasons are called on the status page; ``class_words`` has the names of the classes."""

from collections.abc import Mapping
from enum import StrEnum

from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.snapshot import Reason, ThrottleReason


class Severity(StrEnum):
    """How a class looks on the page, worst first: one colour and one icon each."""

    CRITICAL = "critical"
    PINCHED = "pinched"
    UNSURE = "unsure"
    FINE = "fine"
    QUIET = "quiet"


SEVERITIES: Mapping[Bottleneck, Severity] = {
    Bottleneck.UNKNOWN: Severity.UNSURE,
    Bottleneck.NO_DATA: Severity.CRITICAL,
    Bottleneck.IDLE: Severity.QUIET,
    Bottleneck.HEALTHY: Severity.FINE,
    Bottleneck.KV_CAPACITY: Severity.CRITICAL,
    Bottleneck.COMPUTE: Severity.PINCHED,
    Bottleneck.MEMORY_BANDWIDTH: Severity.PINCHED,
    Bottleneck.SCHEDULER: Severity.PINCHED,
    Bottleneck.HOST_CPU: Severity.PINCHED,
    Bottleneck.INTERCONNECT: Severity.PINCHED,
    Bottleneck.NETWORK: Severity.PINCHED,
    Bottleneck.HARDWARE: Severity.CRITICAL,
    Bottleneck.IMBALANCE: Severity.PINCHED,
    Bottleneck.MEMORY_GROWTH: Severity.PINCHED,
    Bottleneck.STALLED: Severity.CRITICAL,
    Bottleneck.SLEEPING: Severity.QUIET,
}

# Where the label value itself does not read well.
_REASONS: dict[Reason, str] = {
    Reason.HUNG: "hangs",
    Reason.TIMEOUT: "timed out",
    Reason.NO_LIBRARY: "no NVML library",
    Reason.GPU_LOST: "GPU lost",
    Reason.DNS: "name does not resolve",
    Reason.CONNECT_REFUSED: "connection refused",
    Reason.TLS: "TLS failed",
    Reason.HTTP_STATUS: "HTTP error",
    Reason.NOT_EXPOSITION: "no metrics in the answer",
    Reason.TRUNCATED: "answer cut short",
    Reason.TOO_LARGE: "answer too large",
    Reason.ENGINE_DEAD: "engine is dead",
    Reason.INVALID: "invalid value",
    Reason.ERROR: "defect, see the log",
}

_THROTTLES: dict[str, str] = {
    ThrottleReason.SW_POWER_CAP: "power cap",
    ThrottleReason.HW_SLOWDOWN: "hardware slowdown",
    ThrottleReason.HW_THERMAL_SLOWDOWN: "too hot",
    ThrottleReason.HW_POWER_BRAKE: "power brake",
    ThrottleReason.SW_THERMAL_SLOWDOWN: "hot",
    ThrottleReason.APPLICATIONS_CLOCKS: "clocks limited",
}


def within(phrase: str) -> str:
    """A phrase in the middle of a sentence: its first letter small, unless it opens an abbreviation."""
    return phrase if phrase[1:2].isupper() else phrase[:1].lower() + phrase[1:]


def opening(phrase: str) -> str:
    """A phrase at the start of a sentence."""
    return phrase[:1].upper() + phrase[1:]


def in_words(label: str) -> str:
    """A label value as words: ``hw_thermal_slowdown`` -> ``hw thermal slowdown``."""
    return label.replace("_", " ")


def reason_in_words(reason: Reason) -> str:
    return _REASONS.get(reason, in_words(reason))


def throttle_in_words(reason: str) -> str:
    return _THROTTLES.get(reason, in_words(reason))
