"""What asking NVML costs, and which question is not being answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlCall:
    """One NVML function since the daemon started, over all GPUs and threads: how often it returned, after how long."""

    call: str
    calls_total: int
    seconds_total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckCall:
    """A call that has not returned yet; ``gpu`` is its index, empty for a call about the node."""

    gpu: str
    call: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlCalls:
    """Every call so far, and those in progress for longer than a second.

    ``field_seconds_total`` is, by field id, the driver's own measure (``latencyUsec``) for the values it reads in a
    batch; the driver may give values that it read together the same time each.
    """

    calls: tuple[NvmlCall, ...] = ()
    field_seconds_total: Mapping[str, float] = field(default_factory=dict)
    stuck: tuple[StuckCall, ...] = ()
