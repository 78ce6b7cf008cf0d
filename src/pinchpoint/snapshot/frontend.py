"""What the server before the replicas says of itself: one for all of them, whatever their number."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendReading:
    """Counts of the endpoint as a whole. A key that is missing from a mapping is unknown, not 0."""

    admission_rejections_total: Mapping[str, float] = field(default_factory=dict)  # by reason: turned away at the door
    sleep_operations_in_flight: Mapping[str, float] = field(default_factory=dict)  # by operation: sleep, wake, ...
    lora_adapters_max: float | None = None  # that one batch may hold
    lora_adapters: Mapping[str, float] = field(default_factory=dict)  # with a request that is running, that is waiting
    lora_running: tuple[str, ...] = ()  # their names, the first few; an adapter may be in both
    lora_waiting: tuple[str, ...] = ()
