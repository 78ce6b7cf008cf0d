"""What an expression asks for: its selectors with the functions around them, the labels that it groups and joins by."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import promql_parser as promql

_GROUPED = re.compile(r"\b(?:by|on|ignoring|without|group_left|group_right)\s*\(([^)]*)\)")


@dataclass(frozen=True)
class Selector:
    """One selector of an expression. ``within`` are the functions and aggregations around it, the outermost first."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]  # label, operator, value
    window: timedelta | None
    within: tuple[str, ...]


def selectors(expr: str) -> list[Selector]:
    """Of ``expr``, whose variables are filled in. Raises ``ValueError`` where it is no PromQL."""
    return list(_selectors(promql.parse(expr), ()))


def grouping_labels(expr: str) -> set[str]:
    """Every label in ``by``, ``on`` and the like."""
    return {label.strip() for labels in _GROUPED.findall(expr) for label in labels.split(",") if label.strip()}


def _selectors(node: object, within: tuple[str, ...]) -> Iterator[Selector]:
    match node:
        case promql.VectorSelector():
            yield _selector(node, None, within)
        case promql.MatrixSelector():
            yield _selector(node.vector_selector, node.range, within)
        case promql.BinaryExpr():
            yield from _selectors(node.lhs, within)
            yield from _selectors(node.rhs, within)
        case promql.Call():
            for argument in node.args:
                yield from _selectors(argument, (*within, node.func.name))
        case promql.AggregateExpr():
            yield from _selectors(node.expr, (*within, str(node.op)))
        case promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            yield from _selectors(node.expr, within)


def _selector(node: promql.VectorSelector, window: timedelta | None, within: tuple[str, ...]) -> Selector:
    matchers = tuple((each.name, _OPERATORS[str(each.op)], each.value) for each in node.matchers.matchers)
    return Selector(node.name or "", matchers, window, within)


_OPERATORS = {
    "MatchOp.Equal": "=",
    "MatchOp.NotEqual": "!=",
    "MatchOp.Re": "=~",
    "MatchOp.NotRe": "!~",
}
