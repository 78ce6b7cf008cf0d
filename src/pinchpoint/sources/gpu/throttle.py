"""How long a GPU has been held back, by reason."""

from collections.abc import Mapping

from pinchpoint.snapshot import ThrottleReason


class ThrottleLedger:
    """Cumulative seconds per reason: the driver's own counter where there is one, else the sum of our samples.

    A sample says that the reason held until the next one; a gap longer than ``longest_gap_seconds`` is unknown time and
    isn't counted. The driver's counters are passed on as they are, a reset included; one that is missing for a cycle
    stays where it was.
    """

    def __init__(self, longest_gap_seconds: float) -> None:
        self._longest_gap_seconds = longest_gap_seconds
        self._at: float | None = None
        self._active: Mapping[ThrottleReason, float] = {}
        self._sampled: dict[ThrottleReason, float] = {}
        self._counted: dict[ThrottleReason, float] = {}

    def account(
        self, at: float, active: Mapping[ThrottleReason, float], counted: Mapping[ThrottleReason, float]
    ) -> dict[ThrottleReason, float]:
        """Take one cycle's point samples (0 or 1) and driver counters (seconds); the totals up to ``at``."""
        gap = at - self._at if self._at is not None else 0.0
        known = gap if 0 <= gap <= self._longest_gap_seconds else 0.0
        for reason in active:
            self._sampled[reason] = self._sampled.get(reason, 0.0) + known * self._active.get(reason, 0.0)
        self._at, self._active = at, active
        self._counted |= counted
        return {**self._sampled, **self._counted}
