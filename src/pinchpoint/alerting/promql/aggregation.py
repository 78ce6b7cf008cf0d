"""Aggregations: many samples become one for each group, or the foremost of each group stay."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pinchpoint.alerting.labels import NO_LABELS, Labels, dropping, keeping
from pinchpoint.alerting.promql.nodes import Vector

FOLDS: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": lambda values: float(sum(values)),
    "avg": lambda values: sum(values) / len(values),
    "min": lambda values: min((v for v in values if not math.isnan(v)), default=math.nan),
    "max": lambda values: max((v for v in values if not math.isnan(v)), default=math.nan),
    "count": lambda values: float(len(values)),
    "group": lambda _: 1.0,
}
FOREMOST = ("topk", "bottomk")


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which samples are aggregated together: those equal in ``names`` (``by``), or in all other labels."""

    by: bool = True
    names: frozenset[str] = frozenset()

    def key(self, labels: Labels) -> Labels:
        """The labels of the group."""
        if self.by:
            return keeping(labels, self.names) if self.names else NO_LABELS
        return dropping(labels, self.names)


def fold(name: str, vector: Vector, grouping: Grouping) -> Vector:
    """One sample for each group."""
    groups: dict[Labels, list[float]] = {}
    for labels, value in vector.items():
        groups.setdefault(grouping.key(labels), []).append(value)
    make = FOLDS[name]
    return {labels: make(values) for labels, values in groups.items()}


def foremost(name: str, count: float, vector: Vector, grouping: Grouping) -> Vector:
    """The ``count`` highest (``topk``) or lowest of each group, with all their labels. NaN comes last."""
    groups: dict[Labels, list[tuple[float, Labels]]] = {}
    for labels, value in vector.items():
        groups.setdefault(grouping.key(labels), []).append((value, labels))
    sign = -1.0 if name == "topk" else 1.0
    result: Vector = {}
    for members in groups.values():
        members.sort(key=lambda member: (math.isnan(member[0]), sign * member[0]))
        result.update((labels, value) for value, labels in members[: max(0, int(count))])
    return result
