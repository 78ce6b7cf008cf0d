"""Selectors: which series, and which of their samples."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import promql_parser as ast

from pinchpoint.alerting.labels import Labels, Matcher, matcher
from pinchpoint.alerting.promql.nodes import Moment, PromqlError, Vector
from pinchpoint.alerting.track import Window, milliseconds

LOOKBACK_MS = 300_000  # Prometheus' --query.lookback-delta

_OPERATORS = (
    (ast.MatchOp.Equal, "="),
    (ast.MatchOp.NotEqual, "!="),
    (ast.MatchOp.Re, "=~"),
    (ast.MatchOp.NotRe, "!~"),
)


@dataclass(frozen=True, slots=True)
class Selector:
    """The series of a name that meet all conditions, ``offset_ms`` ago."""

    name: str
    matchers: tuple[Matcher, ...]
    offset_ms: int

    def samples(self, moment: Moment) -> Iterator[tuple[Labels, int, float]]:
        """Of each series that is there the labels, the time (milliseconds) and the value of its newest sample."""
        then = moment.now_ms - self.offset_ms
        for track in moment.series.matching(self.name, self.matchers):
            found = track.at(then, LOOKBACK_MS)
            if found >= 0:
                yield track.labels, track.times[found], track.values[found]

    def vector(self, moment: Moment) -> Vector:
        """The newest value of each series."""
        return {labels: value for labels, _, value in self.samples(moment)}

    def windows(self, moment: Moment, range_ms: int) -> Iterator[tuple[Labels, Window]]:
        """Of each series that has any, the samples of a range."""
        end = moment.now_ms - self.offset_ms
        for track in moment.series.matching(self.name, self.matchers):
            window = track.window(end - range_ms, end)
            if window is not None:
                yield track.labels, window


def selector_of(node: Any) -> Selector:
    """The selector of a parsed ``VectorSelector``. Raises ``PromqlError`` for one outside the subset."""
    if node.at is not None:
        raise PromqlError("the modifier @ is outside the subset")
    if node.matchers.or_matchers:
        raise PromqlError("conditions joined by `or` in a selector are outside the subset")
    conditions = [(each.name, _operator(each), each.value) for each in node.matchers.matchers]
    if node.name is None or any(name == "__name__" for name, _, _ in conditions):
        raise PromqlError("a selector that does not start with a metric's name is outside the subset")
    try:
        matchers = tuple(matcher(*condition) for condition in conditions)
    except ValueError as error:
        raise PromqlError(str(error)) from None
    return Selector(node.name, matchers, milliseconds(node.offset.total_seconds()) if node.offset else 0)


def _operator(node: Any) -> str:
    return next(text for kind, text in _OPERATORS if kind == node.op)
