"""The recent samples of one series."""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from pinchpoint.alerting.labels import Labels


def milliseconds(seconds: float) -> int:
    """Whole milliseconds."""
    return round(seconds * 1000)


class Track:
    """One series: its samples in order of time, and the moments at which it was found to be gone.

    ``resets`` is, at each sample, the sum of all values from which a counter fell until then: an increase over any
    range is then read off its two ends. Times are whole milliseconds since 1970, as in
    Prometheus, so that none is rounded.
    """

    __slots__ = ("labels", "resets", "stale_at", "times", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.times, self.values, self.resets = array("q"), array("d"), array("d")
        self.stale_at = array("q")

    def append(self, at: int, value: float) -> None:
        """A sample that is newer than all before."""
        reset = 0.0
        if self.values:
            last = self.values[-1]
            reset = self.resets[-1] + (last if value < last else 0.0)
        self.times.append(at)
        self.values.append(value)
        self.resets.append(reset)

    def is_missing(self, at: int) -> None:
        """Whoever would have given a sample now did not: the series is stale from now on, until its next sample."""
        if not self.stale_at or self.stale_at[-1] < self.times[-1]:
            self.stale_at.append(at)

    def cut(self, before: int, max_samples: int) -> int:
        """Forgets what is older than ``before``, and of the rest the oldest beyond ``max_samples``: returns how many of
        these."""
        old = bisect_left(self.times, before)
        many = max(0, len(self.times) - old - max_samples)
        if old + many:
            for column in (self.times, self.values, self.resets):
                del column[: old + many]
            del self.stale_at[: bisect_left(self.stale_at, before)]
        return many

    def forget_from(self, at: int) -> None:
        """Forgets what is not older than that: the clock was set back."""
        kept = bisect_left(self.times, at)
        for column in (self.times, self.values, self.resets):
            del column[kept:]
        del self.stale_at[bisect_left(self.stale_at, at) :]

    def move(self, by: int) -> None:
        """Goes over to a clock that is ahead by so much."""
        for column in (self.times, self.stale_at):
            column[:] = array("q", (at + by for at in column))

    def at(self, at: int, lookback: int) -> int:
        """The index of the newest sample then; -1 where none is younger than ``lookback``, or the series is stale."""
        found = bisect_right(self.times, at) - 1
        if found < 0 or self.times[found] <= at - lookback:
            return -1
        marks = bisect_right(self.stale_at, at)
        return -1 if marks and self.stale_at[marks - 1] > self.times[found] else found

    def window(self, start: int, end: int) -> "Window | None":
        """The samples after ``start`` and until ``end``, as Prometheus 3 counts them; ``None`` if there are none."""
        low, high = bisect_right(self.times, start), bisect_right(self.times, end)
        return Window(self, low, high, start, end) if low < high else None


@dataclass(frozen=True, slots=True)
class Window:
    """Samples ``low`` to ``high`` (not included) of a series, at least one: all of the range ``start`` to ``end``."""

    track: Track
    low: int
    high: int
    start: int
    end: int

    @property
    def times(self) -> "array[int]":
        return self.track.times[self.low : self.high]

    @property
    def values(self) -> "array[float]":
        return self.track.values[self.low : self.high]

    def __len__(self) -> int:
        return self.high - self.low
