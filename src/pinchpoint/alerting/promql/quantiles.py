"""Quantiles of samples and of classic histograms, as Prometheus defines them (promql/quantile.go)."""

import math
from collections.abc import Iterable

from pinchpoint.alerting.labels import Labels, dropping, value_of
from pinchpoint.alerting.promql.nodes import Vector

_LE = frozenset({"le"})


def quantile(share: float, values: Iterable[float]) -> float:
    """The quantile of the values, linear between two of them; NaN counts as the lowest."""
    ordered = sorted(values, key=lambda value: (not math.isnan(value), value))
    if not ordered or math.isnan(share):
        return math.nan
    if share < 0:
        return -math.inf
    if share > 1:
        return math.inf
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    weight = rank - low
    return ordered[low] * (1 - weight) + ordered[high] * weight


def histogram_quantile(share: float, buckets: Vector) -> Vector:
    """The quantile of each histogram, from its buckets' cumulative counts (label ``le``)."""
    histograms: dict[Labels, dict[float, float]] = {}
    for labels, count in buckets.items():
        try:
            bound = float(value_of(labels, "le"))
        except ValueError:
            continue
        counts = histograms.setdefault(dropping(labels, _LE), {})
        counts[bound] = counts.get(bound, 0.0) + count
    return {labels: _bucket_quantile(share, counts) for labels, counts in histograms.items()}


def _bucket_quantile(share: float, counts: dict[float, float]) -> float:
    if math.isnan(share):
        return math.nan
    if share < 0:
        return -math.inf
    if share > 1:
        return math.inf
    bounds = sorted(counts)
    if bounds[-1] != math.inf or len(bounds) < 2:
        return math.nan
    cumulative = []
    most = counts[bounds[0]]
    for bound in bounds:  # a count that is lower than that of a smaller bucket comes from scrapes that overlap
        most = max(most, counts[bound])
        cumulative.append(most)
    if cumulative[-1] == 0 or math.isnan(cumulative[-1]):
        return math.nan
    rank = share * cumulative[-1]
    found = next((i for i, count in enumerate(cumulative[:-1]) if count >= rank), len(bounds) - 1)
    if found == len(bounds) - 1:
        return bounds[-2]
    if found == 0 and bounds[0] <= 0:
        return bounds[0]
    start, below = (bounds[found - 1], cumulative[found - 1]) if found else (0.0, 0.0)
    inside = cumulative[found] - below
    return start + (bounds[found] - start) * ((rank - below) / inside if inside else math.nan)
