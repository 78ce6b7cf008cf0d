"""What the node does to an engine, from one moment to the next."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Conditions:
    """Set from outside at any time; each step begins under those of its beginning.

    ``clock_ratio`` is the SM clock of the slowest rank's card over its boost clock: ranks run in lock step.
    ``host_slowdown`` multiplies the host's time in each step. ``stalled``: no step is begun, the gauges freeze and
    requests keep queueing. ``asleep`` is that on purpose.
    """

    clock_ratio: float = 1.0
    host_slowdown: float = 1.0
    stalled: bool = False
    asleep: bool = False
