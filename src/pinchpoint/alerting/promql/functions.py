"""Functions of instant vectors and of numbers."""

import math
from collections.abc import Sequence

from pinchpoint.alerting.labels import Labels, Matcher, labels_of
from pinchpoint.alerting.promql.nodes import Vector


def clamp(value: float, lowest: float, highest: float) -> float:
    """The value within its limits; NaN if any is."""
    if math.isnan(value) or math.isnan(lowest) or math.isnan(highest):
        return math.nan
    return max(lowest, min(highest, value))


def clamped(vector: Vector, lowest: float, highest: float) -> Vector:
    """Each value within the limits; nothing where the limits exclude each other."""
    if lowest > highest:
        return {}
    return {labels: clamp(value, lowest, highest) for labels, value in vector.items()}


def scalar(vector: Vector) -> float:
    """The value of the only sample; NaN if there are several or none."""
    return next(iter(vector.values())) if len(vector) == 1 else math.nan


def absent_labels(matchers: Sequence[Matcher]) -> Labels:
    """The labels of what is not there: those that a selector asks to be equal to something, and only once."""
    told: dict[str, str] = {}
    seen = set()
    for each in matchers:
        if each.operator == "=" and each.label not in seen:
            seen.add(each.label)
            told[each.label] = each.value
        else:
            told.pop(each.label, None)
    return labels_of(told)
