"""The checks that pint (github.com/cloudflare/pint) makes of rules, over ours: what parses and never works.

Its checks that ask a server are made by the tests that run the rules over a simulated node.
"""

import re
from datetime import timedelta

import promql_parser as promql
import pytest

from pinchpoint.alerting import ALERTS, RECORDINGS, Alert, Severity
from pinchpoint.outputs.catalog import Kind
from tests.alerting.promql_shape import COMPARISONS, KINDS, LABELS, SCRAPED, SETS, labels_of, matched, walk

EVERY = [(alert.name, alert.expr) for alert in ALERTS] + [(each.record, each.expr) for each in RECORDINGS]
of_every_rule = pytest.mark.parametrize("expr", [expr for _, expr in EVERY], ids=[name for name, _ in EVERY])
of_every_alert = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
# What their event leaves behind is there until somebody acts; nothing flaps, and waiting would only cost time.
AT_ONCE = {
    "PinchpointXid",
    "PinchpointXidMemory",
    "PinchpointGPUMemoryErrors",
    "PinchpointGPURowRemapFailure",
    "PinchpointGPUMemoryRepairPending",
    "PinchpointWatchdog",
}
LEVELS = {"pinchpoint_gpu_ecc_errors_total"}  # a counter whose value is the news: it may begin with its event
OF_COUNTERS = {"rate", "increase", "resets"}
OF_GAUGES = {"deriv", "predict_linear", *(f"{of}_over_time" for of in ("avg", "max", "min", "quantile", "last"))}


def nodes(expr: str, kind: type) -> list:
    return [node for node in walk(promql.parse(expr)) if isinstance(node, kind)]


@of_every_alert
def test_an_alert_compares_something_so_that_it_does_not_always_fire(alert: Alert):
    """pint: alerts/comparison."""
    compares = any(str(node.op) in COMPARISONS for node in nodes(alert.expr, promql.BinaryExpr))
    asks_absence = any(node.func.name == "absent" for node in nodes(alert.expr, promql.Call))
    assert (compares or asks_absence) == (alert.severity is not Severity.NONE)


@of_every_alert
def test_an_alert_waits_and_not_for_less_than_a_few_scrapes(alert: Alert):
    """pint: alerts/for, alerts/absent, rule/for."""
    assert alert.for_seconds >= 60 or alert.name in AT_ONCE
    assert (alert.for_seconds == 0) == (alert.name in AT_ONCE)
    assert alert.for_seconds <= 3600


@of_every_alert
def test_a_text_speaks_only_of_labels_that_the_alert_has(alert: Alert):
    """pint: alerts/template. The value is no label, so that an alert stays the same one."""
    known = labels_of(promql.parse(alert.expr)) or frozenset()
    known |= {"instance"} if alert.needs_outside_view else set()  # one of its two halves has it
    used = set(re.findall(r"\$labels\.(\w+)", alert.description + alert.dashboard))
    assert used <= known
    assert "$value" not in alert.dashboard


@of_every_alert
def test_a_text_tells_the_value_unless_it_is_a_flag(alert: Alert):
    assert re.findall(r"{{.*?}}", alert.summary) == []
    flags = re.search(r"(== [01]|kind=\"\w+\"} > 0|visible\)?|vector\(1\))(\n|$| )", alert.expr)
    assert "$value" in alert.description or flags


@of_every_alert
def test_a_template_is_within_what_every_evaluator_of_ours_can_render(alert: Alert):
    """Labels, the value, and functions of numbers: no queries, which only a Prometheus can answer."""
    for inside in re.findall(r"{{(.*?)}}", alert.description):
        assert re.fullmatch(r" (\$labels\.\w+|\$value( \| humanize(Percentage|Duration|1024)?)?) ", inside)


@of_every_rule
def test_an_aggregation_keeps_the_labels_of_the_scrape(expr: str):
    """pint: promql/aggregate."""
    for node in nodes(expr, promql.AggregateExpr):
        assert node.modifier is not None
        if node.modifier.type == promql.AggModifierType.Without:
            assert not SCRAPED & set(node.modifier.labels)
        else:
            assert set(node.modifier.labels) >= SCRAPED


@of_every_rule
def test_two_vectors_match_by_labels_that_both_have(expr: str):
    """pint: promql/vector_matching, promql/impossible, promql/fragile."""
    for node in nodes(expr, promql.BinaryExpr):
        left, right = labels_of(node.lhs), labels_of(node.rhs)
        if left is None or right is None or str(node.op) == "or":
            continue
        on = matched(node)
        if on is None:
            assert left == right
        else:
            assert on <= left & right
            assert on >= SCRAPED or "absent" in expr


@of_every_rule
def test_the_halves_of_an_or_look_alike(expr: str):
    """So that one thing is one alert, whichever half saw it."""
    for node in nodes(expr, promql.BinaryExpr):
        if str(node.op) == "or" and "absent" not in expr:
            left, right = labels_of(node.lhs), labels_of(node.rhs)
            assert left == right or {left ^ right} == {frozenset({"kind", "cause"})}


@of_every_rule
def test_counters_are_counted_and_gauges_are_not(expr: str):
    """pint: promql/rate, promql/counter."""
    counted = set()
    for call in nodes(expr, promql.Call):
        ranges = [node for node in call.args if isinstance(node, promql.MatrixSelector)]
        for each in ranges:
            kind = KINDS[each.vector_selector.name]
            assert each.range >= timedelta(minutes=5)
            assert call.func.name in (OF_GAUGES if kind in (Kind.GAUGE, Kind.INFO) else OF_COUNTERS)
            counted.add(each.vector_selector.name)
    for node in nodes(expr, promql.VectorSelector):
        raw = KINDS.get(node.name) not in (Kind.COUNTER, Kind.HISTOGRAM)
        assert raw or node.name in counted or node.name in LEVELS


@of_every_rule
def test_a_division_is_never_summed_up(expr: str):
    """pint: promql/nan. Nothing over nothing is NaN, which compares to nothing but poisons a sum."""
    for node in nodes(expr, promql.AggregateExpr):
        assert not any(isinstance(inner, promql.BinaryExpr) and str(inner.op) == "/" for inner in walk(node.expr))


@of_every_rule
def test_matchers_name_their_metric_and_are_regular_expressions_only_where_they_need_to_be(expr: str):
    """pint: promql/regexp, promql/selector."""
    for node in nodes(expr, promql.VectorSelector):
        assert node.name in LABELS
        names = [matcher.name for matcher in node.matchers.matchers]
        assert len(names) == len(set(names))
        assert set(names) <= LABELS[node.name]
        for matcher in node.matchers.matchers:
            assert not matcher.value.startswith("^")
            assert not matcher.value.endswith("$")
            if matcher.op in (promql.MatchOp.Re, promql.MatchOp.NotRe):
                re.compile(matcher.value)
                assert re.search(r"[|.*+]", matcher.value)
                assert matcher.value not in (".*", ".+")


def test_no_rule_is_there_twice_and_none_rests_on_another():
    """pint: rule/duplicate, rule/dependency: alerts work without the recordings."""
    assert len({expr for _, expr in EVERY}) == len(EVERY)
    recorded = {recording.record for recording in RECORDINGS}
    assert not any(record in expr for record in recorded for _, expr in EVERY)


@of_every_alert
def test_a_name_tells_whose_alert_it_is(alert: Alert):
    """pint: rule/name, rule/label."""
    assert re.fullmatch(r"Pinchpoint([A-Z][A-Za-z]+)+", alert.name)
    assert alert.severity in set(Severity)


def test_set_operators_of_three_are_told_apart_by_lines_or_brackets():
    """``a or b and c`` is read in one way by Prometheus and in another by people."""
    for name, expr in EVERY:
        for line in expr.splitlines():
            assert len(re.findall(rf"\b({'|'.join(SETS)})\b", line)) <= 1 or name == "PinchpointTargetAbsent"


_KV, _WAITS = "pinchpoint_engine_kv_cache_usage_ratio", "pinchpoint_engine_requests_waiting"
_UP, _SENT = "pinchpoint_engine_up", "pinchpoint_probe_requests_total"


@pytest.mark.parametrize(
    ("check", "expr"),
    [
        (test_an_aggregation_keeps_the_labels_of_the_scrape, f"max by (engine) ({_KV}) > 1"),
        (test_an_aggregation_keeps_the_labels_of_the_scrape, f"max without (instance) ({_KV}) > 1"),
        (test_two_vectors_match_by_labels_that_both_have, f"{_KV} > 1 and {_UP} == 1"),
        (test_two_vectors_match_by_labels_that_both_have, f"{_KV} > 1 and on (job, instance, gpu) {_UP} == 1"),
        (test_two_vectors_match_by_labels_that_both_have, f"{_KV} > 1 and on (engine) {_UP} == 1"),
        (test_the_halves_of_an_or_look_alike, f"{_KV} > 1 or {_UP} == 0"),
        (test_counters_are_counted_and_gauges_are_not, f"{_SENT} > 5"),
        (test_counters_are_counted_and_gauges_are_not, f"rate({_KV}[5m]) > 5"),
        (test_counters_are_counted_and_gauges_are_not, f"avg_over_time({_SENT}[5m]) > 5"),
        (test_counters_are_counted_and_gauges_are_not, f"rate({_SENT}[1m]) > 5"),
        (test_a_division_is_never_summed_up, f"sum without (replica) ({_KV} / {_WAITS}) > 1"),
        (test_matchers_name_their_metric_and_are_regular_expressions_only_where_they_need_to_be, f'{_UP}{{gpu="0"}}'),
        (
            test_matchers_name_their_metric_and_are_regular_expressions_only_where_they_need_to_be,
            f'{_UP}{{engine=~"a"}}',
        ),
    ],
)
def test_each_check_finds_what_it_is_for(check, expr: str):
    with pytest.raises(AssertionError):
        check(expr)
