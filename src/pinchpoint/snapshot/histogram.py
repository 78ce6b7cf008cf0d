"""A cumulative histogram as it was scraped, and the arithmetic of two of them."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add, gt, sub
from statistics import NormalDist

_LEAST_SPREAD = 0.05  # of a bucket: the middles of the others are guesses too, so no mean is at an edge
_TAIL = 0.0013  # of a normal distribution beyond three deviations


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile of a histogram: within ``at_least`` and ``at_most``, the edges of the bucket that it lies in.

    ``value`` is interpolated between the two. In the lowest and in the open bucket one edge is not known, nothing can
    be interpolated, and ``value`` is ``None``: "at most 10 ms" is all there is to say.
    """

    value: float | None
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram: ``counts[i]`` observations were <= ``bounds[i]``; ``bounds`` ends with +inf.

    ``counts`` are packed, for a history holds thousands of histograms: 8 bytes each instead of 32.

    ``sum`` may fall while ``count`` rises (vLLM can observe a negative queue time), so a falling sum alone is no reset.
    """

    bounds: tuple[float, ...]
    counts: Sequence[float]
    sum: float
    count: float

    def __post_init__(self) -> None:
        if not isinstance(self.counts, array):
            object.__setattr__(self, "counts", array("d", self.counts))

    def since(self, earlier: Histogram | None) -> Histogram | None:
        """What was observed after ``earlier``; ``None`` on a reset (a count fell) or when the buckets differ."""
        if earlier is None or earlier.bounds != self.bounds or self.count < earlier.count:
            return None
        counts = array("d", map(sub, self.counts, earlier.counts))
        if any(map(gt, counts, counts[1:])) or (counts and counts[0] < 0):
            return None
        return Histogram(self.bounds, counts, self.sum - earlier.sum, self.count - earlier.count)

    def plus(self, other: Histogram) -> Histogram | None:
        """Both together (replicas of one engine); ``None`` when their buckets differ."""
        if other.bounds != self.bounds:
            return None
        counts = array("d", map(add, self.counts, other.counts))
        return Histogram(self.bounds, counts, self.sum + other.sum, self.count + other.count)

    @property
    def mean(self) -> float | None:
        """Sum over count, clamped at 0; ``None`` without observations."""
        return max(0.0, self.sum / self.count) if self.count > 0 else None

    def count_within(self, value: float) -> float | None:
        """The observations at or below ``value``, interpolated within its bucket; the lowest begins at 0.

        What lies in the open bucket is above any finite ``value``. From scrape to scrape it only grows, as the buckets
        do. ``None`` without buckets.
        """
        if not self.counts:
            return None
        lower = below = 0.0
        for upper, count in zip(self.bounds, self.counts, strict=True):
            if value < upper:
                part = (value - lower) / (upper - lower) if upper != float("inf") and value > lower else 0.0
                return below + part * (count - below)
            lower, below = upper, count
        return self.counts[-1]

    def share_within(self, value: float) -> float | None:
        """The share of observations at or below ``value``, as ``count_within``; ``None`` when nothing was observed."""
        within = self.count_within(value)
        return None if within is None or self.count <= 0 or self.counts[-1] <= 0 else within / self.counts[-1]

    def quantile(self, q: float) -> Quantile | None:
        """The ``q`` quantile, interpolated within its bucket as PromQL's ``histogram_quantile`` does.

        Unlike there, the lowest bucket is not taken to begin at 0. ``None`` when nothing was observed, or when there is
        no bucket but +Inf.
        """
        if self.count <= 0 or len(self.bounds) < 2 or self.counts[-1] <= 0:
            return None
        rank = q * self.counts[-1]
        at = min(bisect_left(self.counts, rank), len(self.counts) - 1)
        lower, upper = (self.bounds[at - 1] if at else None), self.bounds[at]
        if lower is None or upper == float("inf"):
            return Quantile(None, lower, upper if lower is None else None)
        below, count = self.counts[at - 1], self.counts[at]
        return Quantile(lower + (upper - lower) * ((rank - below) / (count - below)), lower, upper)

    def sharper_quantile(self, q: float) -> Quantile | None:
        """The ``q`` quantile, in its bucket by what the sum tells of the observations there.

        Buckets are wide, and interpolation spreads them evenly: of a hundred at 26 ms in a bucket of 25 to 50 ms it
        takes eighty for longer than 30. The sum, less the other buckets at their middles, is their mean; they are taken
        to lie about it as a normal distribution whose three deviations reach the nearer edge. As ``quantile`` where the
        open bucket, whose middle nobody knows, has a part in the sum.
        """
        found = self.quantile(q)
        if found is None or found.value is None or found.at_least is None or found.at_most is None:
            return found
        inside = others = lower = below = 0.0
        for upper, count in zip(self.bounds, self.counts, strict=True):
            if upper == found.at_most:
                inside, rank = count - below, q * self.counts[-1] - below
            elif count > below:
                if upper == float("inf"):
                    return found
                others += (count - below) * (lower + upper) / 2
            lower, below = upper, count
        lower, upper = found.at_least, found.at_most
        nearest = _LEAST_SPREAD * (upper - lower)
        mean = min(upper - nearest, max(lower + nearest, (self.sum - others) / inside))
        deviation = min(mean - lower, upper - mean) / 3.0
        within = min(1.0 - _TAIL, max(_TAIL, rank / inside))
        return Quantile(NormalDist(mean, deviation).inv_cdf(within), lower, upper)
