"""Operators between two sides, and which sample of one side belongs to which of the other."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass

from pinchpoint.alerting.labels import Labels, dropping, keeping, value_of
from pinchpoint.alerting.promql.nodes import PromqlError, Vector


def divide(left: float, right: float) -> float:
    """IEEE 754 division: by zero it is infinite, and 0/0 is NaN."""
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1.0, right)


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": divide,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}
SETS = ("and", "or", "unless")
Outcome = Callable[[float, float], float | None]  # of the left value and the right; ``None``: left out


def outcome(name: str, *, as_bool: bool) -> Outcome:
    """What the operator makes of two values: a comparison keeps the left one, or tells 0 or 1 (``bool``)."""
    if name in ARITHMETIC:
        return ARITHMETIC[name]
    holds = COMPARISONS[name]
    if as_bool:
        return lambda left, right: float(holds(left, right))
    return lambda left, right: left if holds(left, right) else None


@dataclass(frozen=True, slots=True)
class Matching:
    """Which samples belong together: those equal in the labels ``names`` (``on``), or in all others.

    ``many`` is the side that may have several of them (``left`` for group_left), or empty; ``include`` are the labels
    that the other side gives to the result.
    """

    on: bool = False
    names: frozenset[str] = frozenset()
    many: str = ""
    include: tuple[str, ...] = ()

    def key(self, labels: Labels) -> Labels:
        """What is equal in samples that belong together."""
        if self.on:
            return keeping(labels, self.names)
        return dropping(labels, self.names) if self.names else labels

    def result(self, many: Labels, one: Labels) -> Labels:
        """The labels of the result."""
        if not self.many:
            return self.key(many)
        if not self.include:
            return many
        given = {(name, value) for name in self.include if (value := value_of(one, name))}
        return dropping(many, frozenset(self.include)) | given


def combine(left: Vector, right: Vector, matching: Matching, made: Outcome) -> Vector:
    """The operator between all samples that belong together. Raises ``PromqlError`` if several do and may not."""
    if not left or not right:
        return {}
    many, one = (right, left) if matching.many == "right" else (left, right)
    ones: dict[Labels, tuple[Labels, float]] = {}
    for labels, value in one.items():
        key = matching.key(labels)
        if key in ones:
            raise PromqlError(f"several samples match the labels {_text(key)} on the side where one is allowed")
        ones[key] = labels, value
    result: Vector = {}
    for labels, value in many.items():
        found = ones.get(matching.key(labels))
        if found is None:
            continue
        made_of = made(found[1], value) if matching.many == "right" else made(value, found[1])
        if made_of is None:
            continue
        key = matching.result(labels, found[0])
        if key in result:
            raise PromqlError(f"several samples would have the labels {_text(key)}")
        result[key] = made_of
    return result


def combine_sets(name: str, left: Vector, right: Vector, matching: Matching) -> Vector:
    """``and``, ``or`` and ``unless``: a sample of one side stays for what the other side has."""
    if name == "or":
        there = {matching.key(labels) for labels in left}
        return left | {labels: value for labels, value in right.items() if matching.key(labels) not in there}
    there = {matching.key(labels) for labels in right}
    return {labels: value for labels, value in left.items() if (matching.key(labels) in there) is (name == "and")}


def _text(labels: Labels) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in sorted(labels)) + "}"
