"""Which UTC day it is, by a clock that may be set. Pure: both clocks are passed in."""

from datetime import UTC, datetime

LEAP_SECONDS = 60.0  # by which the wall clock may run ahead of the monotonic one: it is set by less, as a rule
DOUBT_SECONDS = 3600.0  # that a longer leap must last to be believed


def day_of(unix: float) -> str:
    """``2026-11-30``; its first seven characters are the month."""
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%d")


def month_of(day: str) -> str:
    return day[:7]


class Days:
    """Follows the wall clock, but believes a leap forward only once it has lasted.

    A new day brings new money, so a clock that runs off for a moment must not bring one. Set back, the clock is
    followed at once: that day's spending is in the book. A machine that slept starts its new day an hour late.
    """

    def __init__(self) -> None:
        self._anchor: tuple[float, float] | None = None  # wall and monotonic, when they last agreed
        self._leapt_at: float | None = None

    def unix(self, wall: float, monotonic: float) -> float:
        """The Unix time to go by."""
        if self._anchor is not None:
            expected = self._anchor[0] + monotonic - self._anchor[1]
            if wall > expected + LEAP_SECONDS:
                self._leapt_at = monotonic if self._leapt_at is None else self._leapt_at
                if monotonic - self._leapt_at < DOUBT_SECONDS:
                    return expected
        self._anchor, self._leapt_at = (wall, monotonic), None
        return wall
