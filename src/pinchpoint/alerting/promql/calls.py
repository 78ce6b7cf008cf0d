"""Calls of functions: how each takes its arguments."""

import math
from collections.abc import Callable
from typing import Any, Protocol

import promql_parser as ast

from pinchpoint.alerting.labels import NO_LABELS, Labels
from pinchpoint.alerting.promql.functions import absent_labels, clamped, scalar
from pinchpoint.alerting.promql.nodes import Moment, Node, PromqlError, ScalarNode, Vector, VectorNode
from pinchpoint.alerting.promql.quantiles import histogram_quantile
from pinchpoint.alerting.promql.ranges import OVER, predict_linear, quantile_over_time
from pinchpoint.alerting.promql.selectors import LOOKBACK_MS, Selector
from pinchpoint.alerting.track import Window, milliseconds


class Parts(Protocol):
    """Who compiles the arguments."""

    def selector(self, parsed: Any, range_ms: int) -> Selector: ...
    def vector(self, parsed: Any) -> Callable[[Moment], Vector]: ...
    def scalar(self, parsed: Any) -> Callable[[Moment], float]: ...


def call(parts: Parts, parsed: Any) -> Node:
    """The part that calls the function. Raises ``PromqlError`` for one outside the subset."""
    name, arguments = str(parsed.func.name), list(parsed.args)
    if name in OVER:
        over = OVER[name]
        return _over(parts, arguments[0], lambda window, _: over(window))
    if name in _CALLS:
        return _CALLS[name](parts, *arguments)
    raise PromqlError(f"the function {name} is outside the subset")


def _over(parts: Parts, parsed: Any, over: Callable[[Window, Moment], float | None]) -> VectorNode:
    """What a function makes of each series' samples of a range."""
    selector, range_ms = _range(parts, parsed)

    def evaluated(moment: Moment) -> Vector:
        results = ((labels, over(window, moment)) for labels, window in selector.windows(moment, range_ms))
        return {labels: result for labels, result in results if result is not None}

    return VectorNode(evaluated)


def _range(parts: Parts, parsed: Any) -> tuple[Selector, int]:
    parsed = _bare(parsed)
    if not isinstance(parsed, ast.MatrixSelector):
        raise PromqlError("a subquery is outside the subset")
    range_ms = milliseconds(parsed.range.total_seconds())
    return parts.selector(parsed.vector_selector, range_ms), range_ms


def _bare(parsed: Any) -> Any:
    """Without the parentheses around it."""
    while isinstance(parsed, ast.ParenExpr):
        parsed = parsed.expr
    return parsed


def _predict_linear(parts: Parts, samples: Any, ahead: Any) -> Node:
    seconds = parts.scalar(ahead)
    return _over(parts, samples, lambda window, moment: predict_linear(window, moment.now_ms, seconds(moment)))


def _quantile_over_time(parts: Parts, share: Any, samples: Any) -> Node:
    number = parts.scalar(share)
    return _over(parts, samples, lambda window, moment: quantile_over_time(window, number(moment)))


def _histogram_quantile(parts: Parts, share: Any, buckets: Any) -> Node:
    number, vector = parts.scalar(share), parts.vector(buckets)
    return VectorNode(lambda moment: histogram_quantile(number(moment), vector(moment)))


def _clamp(parts: Parts, values: Any, lowest: Any, highest: Any) -> Node:
    vector, low, high = parts.vector(values), parts.scalar(lowest), parts.scalar(highest)
    return VectorNode(lambda moment: clamped(vector(moment), low(moment), high(moment)))


def _clamp_min(parts: Parts, values: Any, lowest: Any) -> Node:
    vector, low = parts.vector(values), parts.scalar(lowest)
    return VectorNode(lambda moment: clamped(vector(moment), low(moment), math.inf))


def _clamp_max(parts: Parts, values: Any, highest: Any) -> Node:
    vector, high = parts.vector(values), parts.scalar(highest)
    return VectorNode(lambda moment: clamped(vector(moment), -math.inf, high(moment)))


def _abs(parts: Parts, values: Any) -> Node:
    vector = parts.vector(values)
    return VectorNode(lambda moment: {labels: abs(value) for labels, value in vector(moment).items()})


def _absent(parts: Parts, values: Any) -> Node:
    vector, told, plain = parts.vector(values), NO_LABELS, _bare(values)
    if isinstance(plain, ast.VectorSelector):
        told = absent_labels(parts.selector(plain, LOOKBACK_MS).matchers)
    return _if_empty(lambda moment: not vector(moment), told)


def _absent_over_time(parts: Parts, samples: Any) -> Node:
    selector, range_ms = _range(parts, samples)
    is_empty: Callable[[Moment], bool] = lambda moment: next(selector.windows(moment, range_ms), None) is None  # noqa: E731
    return _if_empty(is_empty, absent_labels(selector.matchers))


def _if_empty(is_empty: Callable[[Moment], bool], told: Labels) -> Node:
    return VectorNode(lambda moment: {told: 1.0} if is_empty(moment) else {})


def _timestamp(parts: Parts, values: Any) -> Node:
    """Of a plain selector the samples' own times, of anything else the time of the evaluation."""
    plain = _bare(values)
    if isinstance(plain, ast.VectorSelector):
        selector = parts.selector(plain, LOOKBACK_MS)
        return VectorNode(lambda moment: {labels: at / 1000 for labels, at, _ in selector.samples(moment)})
    vector = parts.vector(values)
    return VectorNode(lambda moment: dict.fromkeys(vector(moment), moment.now_ms / 1000))


def _time(_: Parts) -> Node:
    return ScalarNode(lambda moment: moment.now_ms / 1000)


def _vector(parts: Parts, value: Any) -> Node:
    number = parts.scalar(value)
    return VectorNode(lambda moment: {NO_LABELS: number(moment)})


def _scalar(parts: Parts, values: Any) -> Node:
    vector = parts.vector(values)
    return ScalarNode(lambda moment: scalar(vector(moment)))


_CALLS: dict[str, Callable[..., Node]] = {
    "predict_linear": _predict_linear,
    "quantile_over_time": _quantile_over_time,
    "histogram_quantile": _histogram_quantile,
    "clamp": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "abs": _abs,
    "absent": _absent,
    "absent_over_time": _absent_over_time,
    "timestamp": _timestamp,
    "time": _time,
    "vector": _vector,
    "scalar": _scalar,
}
