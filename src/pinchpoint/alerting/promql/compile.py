"""Turns the text of an expression into something that can be evaluated, or says why not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import promql_parser as ast

from pinchpoint.alerting.labels import NO_LABELS
from pinchpoint.alerting.promql.aggregation import FOLDS, FOREMOST, Grouping, fold, foremost
from pinchpoint.alerting.promql.binary import ARITHMETIC, COMPARISONS, SETS, Matching, combine, combine_sets, outcome
from pinchpoint.alerting.promql.calls import call
from pinchpoint.alerting.promql.nodes import Moment, Node, PromqlError, ScalarNode, Vector, VectorNode
from pinchpoint.alerting.promql.selectors import LOOKBACK_MS, Selector, selector_of
from pinchpoint.alerting.series import Series
from pinchpoint.alerting.track import milliseconds


@dataclass(frozen=True, slots=True)
class CompiledExpr:
    """An expression. ``needs`` tells how many seconds back it looks at the series of each name."""

    text: str
    needs: Mapping[str, float]
    _vector: Callable[[Moment], Vector] = field(repr=False)

    def evaluate(self, series: Series, now: float) -> Vector:
        """The samples of the instant ``now`` (Unix seconds), without names. A number is one sample without labels.

        Raises ``PromqlError`` where Prometheus fails as well: several samples match where one may.
        """
        return self._vector(Moment(series, milliseconds(now)))


def compile_expr(text: str) -> CompiledExpr:
    """The expression, ready to be evaluated. Raises ``PromqlError`` for one that is none or is outside the subset."""
    compiler = Compiler()
    try:
        node = compiler.node(ast.parse(text))
    except ValueError as error:  # the parser's, or a PromqlError
        raise PromqlError(f"{' '.join(text.split())}: {error}") from None
    return CompiledExpr(text, compiler.needs, _as_vector(node))


def needs_of(expressions: Iterable[CompiledExpr]) -> dict[str, float]:
    """How many seconds back the series of each name are looked at by any of the expressions."""
    needs: dict[str, float] = {}
    for expression in expressions:
        for name, seconds in expression.needs.items():
            needs[name] = max(seconds, needs.get(name, 0.0))
    return needs


class Compiler:
    """Compiles one expression, part by part, and notes in ``needs`` what it looks at."""

    def __init__(self) -> None:
        self.needs: dict[str, float] = {}

    def node(self, parsed: Any) -> Node:
        """The part that yields what ``parsed`` says."""
        match parsed:
            case ast.ParenExpr():
                return self.node(parsed.expr)
            case ast.NumberLiteral():
                number = float(parsed.val)
                return ScalarNode(lambda _: number)
            case ast.VectorSelector():
                return VectorNode(self.selector(parsed, LOOKBACK_MS).vector)
            case ast.UnaryExpr():
                return self._negated(self.node(parsed.expr))
            case ast.BinaryExpr():
                return self._binary(parsed)
            case ast.AggregateExpr():
                return self._aggregation(parsed)
            case ast.Call():
                return call(self, parsed)
            case ast.MatrixSelector():
                raise PromqlError("a range stands where a value is wanted")
        raise PromqlError(f"a {type(parsed).__name__.removesuffix('Expr').lower()} is outside the subset")

    def selector(self, parsed: Any, range_ms: int) -> Selector:
        """The selector of a parsed ``VectorSelector``, whose samples of the last ``range_ms`` are needed."""
        selector = selector_of(parsed)
        back = max(range_ms + selector.offset_ms, LOOKBACK_MS) / 1000
        self.needs[selector.name] = max(back, self.needs.get(selector.name, 0.0))
        return selector

    def vector(self, parsed: Any) -> Callable[[Moment], Vector]:
        """The part, which must yield a vector."""
        node = self.node(parsed)
        if not isinstance(node, VectorNode):
            raise PromqlError("a number stands where a vector is wanted")
        return node.at

    def scalar(self, parsed: Any) -> Callable[[Moment], float]:
        """The part, which must yield a number."""
        node = self.node(parsed)
        if not isinstance(node, ScalarNode):
            raise PromqlError("a vector stands where a number is wanted")
        return node.at

    def _negated(self, node: Node) -> Node:
        if isinstance(node, ScalarNode):
            number = node.at
            return ScalarNode(lambda moment: -number(moment))
        vector = node.at
        return VectorNode(lambda moment: {labels: -value for labels, value in vector(moment).items()})

    def _aggregation(self, parsed: Any) -> Node:
        name, grouping, vector = str(parsed.op), _grouping(parsed.modifier), self.vector(parsed.expr)
        if name in FOREMOST:
            count = self.scalar(parsed.param)
            return VectorNode(lambda moment: foremost(name, count(moment), vector(moment), grouping))
        if name not in FOLDS:
            raise PromqlError(f"the aggregation {name} is outside the subset")
        return VectorNode(lambda moment: fold(name, vector(moment), grouping))

    def _binary(self, parsed: Any) -> Node:
        name, matching = str(parsed.op), _matching(parsed.modifier)
        if name in SETS:
            first, second = self.vector(parsed.lhs), self.vector(parsed.rhs)
            return VectorNode(lambda moment: combine_sets(name, first(moment), second(moment), matching))
        if name not in ARITHMETIC | COMPARISONS:
            raise PromqlError(f"the operator {name} is outside the subset")
        made = outcome(name, as_bool=bool(parsed.modifier and parsed.modifier.return_bool))
        match self.node(parsed.lhs), self.node(parsed.rhs):
            case ScalarNode(left), ScalarNode(right):
                both = outcome(name, as_bool=True)  # the parser sees to it that it says ``bool``
                return ScalarNode(lambda moment: _number(both(left(moment), right(moment))))
            case VectorNode(vector), ScalarNode(number):
                return VectorNode(lambda moment: _each(vector(moment), number(moment), made))
            case ScalarNode(number), VectorNode(vector):
                turned = outcome(_TURNED.get(name, name), as_bool=bool(parsed.modifier and parsed.modifier.return_bool))
                if name in COMPARISONS:  # keeps the vector's value, on whichever side it stands
                    return VectorNode(lambda moment: _each(vector(moment), number(moment), turned))
                return VectorNode(lambda moment: _each(vector(moment), number(moment), lambda v, n: made(n, v)))
            case VectorNode(left_side), VectorNode(right_side):
                return VectorNode(lambda moment: combine(left_side(moment), right_side(moment), matching, made))
        raise AssertionError


_TURNED = {">": "<", "<": ">", ">=": "<=", "<=": ">="}


def _as_vector(node: Node) -> Callable[[Moment], Vector]:
    if isinstance(node, VectorNode):
        return node.at
    number = node.at
    return lambda moment: {NO_LABELS: number(moment)}


def _each(vector: Vector, number: float, made: Callable[[float, float], float | None]) -> Vector:
    results = ((labels, made(value, number)) for labels, value in vector.items())
    return {labels: result for labels, result in results if result is not None}


def _number(value: float | None) -> float:
    assert value is not None
    return value


def _grouping(modifier: Any) -> Grouping:
    if modifier is None:
        return Grouping()
    return Grouping(by=modifier.type == ast.AggModifierType.By, names=_names(modifier.labels))


def _matching(modifier: Any) -> Matching:
    if modifier is None:
        return Matching()
    fill = modifier.fill_values
    if fill is not None and (fill.lhs is not None or fill.rhs is not None):
        raise PromqlError("fill is outside the subset")
    sides = ((ast.VectorMatchCardinality.ManyToOne, "left"), (ast.VectorMatchCardinality.OneToMany, "right"))
    side = next((side for kind, side in sides if kind == modifier.card), "")
    labels = modifier.matching
    return Matching(
        on=labels is not None and labels.type == ast.LabelModifierType.Include,
        names=_names(labels.labels if labels is not None else ()),
        many=side,
        include=tuple(modifier.group_labels or ()),
    )


def _names(labels: Iterable[str]) -> frozenset[str]:
    names = frozenset(labels)
    if "__name__" in names:
        raise PromqlError("grouping by __name__ is outside the subset")
    return names
