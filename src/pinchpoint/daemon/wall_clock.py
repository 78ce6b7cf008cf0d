"""What time it is for people: how far the system's clock is ahead of the monotonic one that readings are timed by."""

import time
from collections.abc import Callable

STEADY_SECONDS = 0.01  # two clocks are never read at the same moment: less than this is no change


class WallClock:
    """The offset stays the same number while the clocks agree, so that a time which has not moved is told as before:
    whoever counts changes of a timestamp would count ticks otherwise."""

    def __init__(self, clock: Callable[[], float], unix_time: Callable[[], float] = time.time) -> None:
        self._clock, self._unix_time = clock, unix_time
        self._offset: float | None = None

    def offset(self) -> float:
        """What to add to a reading's ``at`` for Unix time. Follows a clock that is set, and one that drifts."""
        offset = self._unix_time() - self._clock()
        if self._offset is None or abs(offset - self._offset) >= STEADY_SECONDS:
            self._offset = offset
        return self._offset
