"""What the node does to an engine, from one moment to the next."""

from dataclasses import dataclass
from math import ceil


@dataclass(slots=True, kw_only=True)
class Conditions:
    """Set from outside at any time; each step begins under those of its beginning.

    ``clock_ratio`` is the SM clock of the slowest rank's card over its boost clock: ranks run in lock step.
    The host's threads run for the first ``cpu_share`` of each ``cpu_period_seconds`` and stand still for the rest of
    it: the cards go on with what they were given. ``stalled``: no step is begun, the gauges freeze and requests keep
    queueing. ``asleep`` is that on purpose.
    """

    clock_ratio: float = 1.0
    cpu_share: float = 1.0
    cpu_period_seconds: float = 0.1
    stalled: bool = False
    asleep: bool = False

    def host_seconds(self, now: float, cpu_seconds: float) -> float:
        """How long after ``now`` a thread has had ``cpu_seconds`` of CPU time."""
        if self.cpu_share >= 1.0 or cpu_seconds <= 0.0:
            return cpu_seconds
        period, runs = self.cpu_period_seconds, self.cpu_share * self.cpu_period_seconds
        phase = now % period
        before = min(phase, runs)  # as if it had begun with the period: so much of its share is over
        waited = phase - before
        whole = max(0, ceil((before + cpu_seconds) / runs) - 1)
        return whole * (period - runs) + cpu_seconds - waited
