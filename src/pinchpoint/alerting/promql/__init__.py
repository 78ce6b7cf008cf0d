"""Evaluates the PromQL that the alerts are written in, over samples kept in memory, as Prometheus 3 does.

The subset: selectors that name their metric, all matchers, ranges, ``offset``; ``+ - * /``, comparisons (``bool``),
``and or unless``, ``on``, ``ignoring``, ``group_left``, ``group_right``; sum, avg, min, max, count, group, topk,
bottomk with ``by`` and ``without``; rate, increase, delta, deriv, predict_linear, resets, changes, avg_, max_, min_,
sum_, count_, quantile_, last_, present_ and absent_over_time; histogram_quantile of classic histograms; absent, abs,
clamp, clamp_min, clamp_max, time, timestamp, vector, scalar.

Is not: a query engine. No subqueries, no ``@``, no ranges of time, no native histograms, no ``^``, ``%`` and ``atan2``,
no label_replace, no metric names in results: nothing that an alert needs.
"""

from pinchpoint.alerting.promql.compile import CompiledExpr, compile_expr, needs_of
from pinchpoint.alerting.promql.nodes import PromqlError, Vector

__all__ = ["CompiledExpr", "PromqlError", "Vector", "compile_expr", "needs_of"]
