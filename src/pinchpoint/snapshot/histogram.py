"""A cumulative histogram as it was scraped, and the arithmetic of two of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram: ``counts[i]`` observations were <= ``bounds[i]``; ``bounds`` ends with +inf.

    ``sum`` may fall while ``count`` rises (vLLM can observe a negative queue time), so a falling sum alone is no reset.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float
    count: float

    def since(self, earlier: Histogram | None) -> Histogram | None:
        """What was observed after ``earlier``; ``None`` on a reset (a count fell) or when the buckets differ."""
        if earlier is None or earlier.bounds != self.bounds or self.count < earlier.count:
            return None
        counts = tuple(now - before for now, before in zip(self.counts, earlier.counts, strict=True))
        if any(after < before for before, after in pairwise(counts)) or (counts and counts[0] < 0):
            return None
        return Histogram(self.bounds, counts, self.sum - earlier.sum, self.count - earlier.count)

    def plus(self, other: Histogram) -> Histogram | None:
        """Both together (replicas of one engine); ``None`` when their buckets differ."""
        if other.bounds != self.bounds:
            return None
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return Histogram(self.bounds, counts, self.sum + other.sum, self.count + other.count)

    @property
    def mean(self) -> float | None:
        """Sum over count, clamped at 0; ``None`` without observations."""
        return max(0.0, self.sum / self.count) if self.count > 0 else None

    def quantile(self, q: float) -> float | None:
        """The ``q`` quantile by linear interpolation within its bucket, as PromQL's ``histogram_quantile`` does.

        Returns the highest finite bound when the quantile lies in the +Inf bucket, ``None`` without observations.
        """
        if self.count <= 0 or not self.bounds or self.counts[-1] <= 0:
            return None
        rank = q * self.counts[-1]
        lower, below = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank:
                if bound == float("inf"):
                    return lower
                return lower + (bound - lower) * ((rank - below) / (count - below) if count > below else 1.0)
            lower, below = bound, count
        return lower
