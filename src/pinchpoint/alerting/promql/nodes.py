"""What an expression is made of once it is compiled."""

from collections.abc import Callable
from dataclasses import dataclass

from pinchpoint.alerting.labels import Labels
from pinchpoint.alerting.series import Series

Vector = dict[Labels, float]


class PromqlError(ValueError):
    """One line: what of an expression can't be evaluated, and why."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What is evaluated over, and when (milliseconds since 1970)."""

    series: Series
    now_ms: int


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """A part of an expression that yields a number."""

    at: Callable[[Moment], float]


@dataclass(frozen=True, slots=True)
class VectorNode:
    """A part of an expression that yields a number for each of some label sets. The caller may change what it gets."""

    at: Callable[[Moment], Vector]


Node = ScalarNode | VectorNode
