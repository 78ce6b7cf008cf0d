"""What the result of a PromQL expression looks like: which labels it has, and whether it can be empty."""

from collections.abc import Iterator, Mapping

import promql_parser as promql

from pinchpoint.outputs.catalog import CATALOG, Kind

SCRAPED = frozenset({"job", "instance"})
LABELS: Mapping[str, frozenset[str]] = {
    "up": SCRAPED,
    **{
        name: SCRAPED | set(metric.labels) | ({"le"} if name.endswith("_bucket") else set())
        for metric in CATALOG
        for name in metric.series_names
    },
}
KINDS: Mapping[str, Kind] = {name: metric.kind for metric in CATALOG for name in metric.series_names}
SETS = {"and", "or", "unless"}
COMPARISONS = {"==", "!=", ">", "<", ">=", "<="}


def walk(node: promql.Expr) -> Iterator[promql.Expr]:
    """The expression and everything in it."""
    yield node
    for inner in children(node):
        yield from walk(inner)


def children(node: promql.Expr) -> list[promql.Expr]:
    match node:
        case promql.BinaryExpr():
            return [node.lhs, node.rhs]
        case promql.MatrixSelector():
            return [node.vector_selector]
        case promql.AggregateExpr() | promql.ParenExpr() | promql.UnaryExpr() | promql.SubqueryExpr():
            return [node.expr]
        case promql.Call():
            return list(node.args)
        case _:
            return []


def labels_of(node: promql.Expr) -> frozenset[str] | None:
    """The labels of the result; ``None`` of a number. As Prometheus' engine makes them."""
    match node:
        case promql.VectorSelector():
            return LABELS[node.name]
        case promql.AggregateExpr():
            inner = labels_of(node.expr) or frozenset()
            named = frozenset(node.modifier.labels) if node.modifier else frozenset()
            without = node.modifier and node.modifier.type == promql.AggModifierType.Without
            return inner - named if without else inner & named
        case promql.Call():
            return _labels_of_call(node)
        case promql.BinaryExpr():
            return _labels_of_binary(node)
        case promql.NumberLiteral() | promql.StringLiteral():
            return None
        case _:
            return labels_of(children(node)[0])


def _labels_of_call(node: promql.Call) -> frozenset[str] | None:
    if node.func.name in ("time", "scalar"):
        return None
    if node.func.name in ("vector", "absent", "absent_over_time"):
        return frozenset()
    every = (labels_of(argument) for argument in node.args)
    found = next(labels for labels in every if labels is not None)
    return found - {"le"} if node.func.name == "histogram_quantile" else found


def _labels_of_binary(node: promql.BinaryExpr) -> frozenset[str] | None:
    left, right = labels_of(node.lhs), labels_of(node.rhs)
    if left is None or right is None:
        return right if left is None else left
    if str(node.op) == "or":
        return left & right  # what every result has
    if str(node.op) in ("and", "unless") or str(card(node)).endswith("ManyToOne"):
        return left
    return matched(node) or left


def card(node: promql.BinaryExpr) -> object:
    return node.modifier.card if node.modifier else None


def matched(node: promql.BinaryExpr) -> frozenset[str] | None:
    """The labels of an ``on (...)``; ``None`` without one."""
    matching = node.modifier.matching if node.modifier else None
    if matching is None or matching.type != promql.LabelModifierType.Include:
        return None
    return frozenset(matching.labels)
