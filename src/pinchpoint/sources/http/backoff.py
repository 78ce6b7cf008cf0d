"""How often something that fails is asked: pure, time is passed in."""

LONGEST_SECONDS = 60.0  # a return is noticed within a minute


class Backoff:
    """At every interval while it answers and after the first failure; then half as often with each further one.

    Meant for a caller that comes by at every interval and asks ``is_due``; the interval is the floor. ``longest``
    limits the pause. One success, and the next is due at the next interval.
    """

    def __init__(self, interval_seconds: float) -> None:
        self._interval = interval_seconds
        self._failures = 0
        self._due_at = float("-inf")

    def is_due(self, now: float) -> bool:
        """Within half an interval, so that a caller who comes a little early is not sent away for a whole one."""
        return now >= self._due_at - self._interval / 2

    def failed(self, began: float, longest_seconds: float = LONGEST_SECONDS) -> None:
        """An attempt that began then has failed."""
        pause = self._interval * 2 ** min(self._failures, 20)
        self._due_at = began + max(self._interval, min(pause, longest_seconds))
        self._failures += 1

    def succeeded(self) -> None:
        self._failures, self._due_at = 0, float("-inf")
