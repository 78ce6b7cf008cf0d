"""Whatever is evaluated here is what a real Prometheus answers, over the same samples at the same time."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.labels import Labels, labels_of
from pinchpoint.alerting.promql import CompiledExpr, PromqlError, compile_expr, needs_of
from pinchpoint.alerting.series import Series
from tests.alerting.promql.expressions import EXPRESSIONS
from tests.alerting.promql.trouble import BATCHES, moments, trouble
from tests.fakes.remote_write import WritablePrometheus

EXPRS = [*EXPRESSIONS, *(alert.expr for alert in ALERTS)]
MOMENTS = 10


@pytest.mark.parametrize("seed", [1, 2])
async def test_every_expression_yields_what_a_real_prometheus_answers(tmp_path: Path, seed: int) -> None:
    given = trouble(seed)
    assert len(given.batches) < BATCHES
    compiled = [compile_expr(expr) for expr in EXPRS]
    async with WritablePrometheus(tmp_path) as prometheus:
        for batch in given.written():
            await prometheus.write(batch)
        series = Series(needs_of(compiled))
        batches = iter(given.batches)
        upcoming = next(batches)
        answered: set[str] = set()
        for now in moments(seed, MOMENTS):
            while upcoming and upcoming[0] <= now:
                series.append(upcoming[0] / 1000, upcoming[1])
                upcoming = next(batches, None)
            for expr in compiled:
                theirs = await answer(prometheus, expr.text, now)
                ours = evaluated(expr, series, now)
                assert alike(ours, theirs), f"{expr.text} at {now}:\n{difference(ours, theirs)}"
                if ours:
                    answered.add(expr.text)
    assert set(EXPRESSIONS) - answered <= NEVER_ANYTHING
    assert len(answered.difference(EXPRESSIONS)) > len(ALERTS) / 2


# By their very nature, or because an error is what is wanted.
NEVER_ANYTHING = {
    "nothing",
    "topk(0, gauge)",
    "sum(nothing)",
    "clamp(gauge, 0.5, 0.2)",
    "histogram_quantile(0.5, gauge)",
    "gauge / single",
    "gauge and limit",
}


async def answer(prometheus: WritablePrometheus, expr: str, now_ms: int) -> Mapping[Labels, float] | str:
    """What it answers, without names; the words where it fails."""
    parameters = {"query": expr, "time": f"{now_ms / 1000:.3f}"}
    async with prometheus._http.post(f"{prometheus.url}/api/v1/query", data=parameters) as reply:
        body: dict[str, Any] = await reply.json()
    if body["status"] != "success":
        return str(body["error"])
    found = body["data"]["result"]
    if body["data"]["resultType"] == "scalar":
        return {frozenset(): float(found[1])}
    result = {}
    for each in found:
        each["metric"].pop("__name__", None)
        result[labels_of(each["metric"])] = float(each["value"][1])
    assert len(result) == len(found)
    return result


def evaluated(expr: CompiledExpr, series: Series, now_ms: int) -> Mapping[Labels, float] | str:
    try:
        return expr.evaluate(series, now_ms / 1000)
    except PromqlError as error:
        return str(error)


def alike(ours: Mapping[Labels, float] | str, theirs: Mapping[Labels, float] | str) -> bool:
    if isinstance(ours, str) or isinstance(theirs, str):
        return isinstance(ours, str) and isinstance(theirs, str)
    return ours.keys() == theirs.keys() and all(is_close(value, theirs[labels]) for labels, value in ours.items())


def is_close(ours: float, theirs: float) -> bool:
    if math.isnan(ours) or math.isnan(theirs):
        return math.isnan(ours) and math.isnan(theirs)
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-12)


def difference(ours: Mapping[Labels, float] | str, theirs: Mapping[Labels, float] | str) -> str:
    if isinstance(ours, str) or isinstance(theirs, str):
        return f"ours {ours}\ntheirs {theirs}"
    wrong = [f"{dict(k)}: ours {ours.get(k)}, theirs {theirs.get(k)}" for k in ours.keys() | theirs.keys()
             if k not in ours or k not in theirs or not is_close(ours[k], theirs[k])]  # fmt: skip
    return "\n".join(wrong[:6])
