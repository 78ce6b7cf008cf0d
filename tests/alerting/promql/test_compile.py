"""What is outside the subset is refused in one line when it is compiled; what is needed of the past is known then."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.labels import anchored
from pinchpoint.alerting.promql import PromqlError, compile_expr, needs_of
from pinchpoint.alerting.promql.quantiles import histogram_quantile, quantile
from pinchpoint.alerting.series import Series


@pytest.mark.parametrize(
    ("expr", "words"),
    [
        ("max_over_time(rate(x[5m])[1h:1m])", "a subquery is outside the subset"),
        ("x[5m:1m]", "a subquery is outside the subset"),
        ("x[5m]", "a range stands where a value is wanted"),
        ("x @ 1609746000", "the modifier @ is outside the subset"),
        ("rate(x[5m] @ end())", "the modifier @ is outside the subset"),
        ('{a="b"}', "does not start with a metric's name"),
        ('{__name__=~"x.*"}', "does not start with a metric's name"),
        ('x{a="b" or c="d"}', "conditions joined by `or`"),
        ("x ^ 2", "the operator ^ is outside the subset"),
        ("x % 2", "the operator % is outside the subset"),
        ("sort(x)", "the function sort is outside the subset"),
        ("irate(x[5m])", "the function irate is outside the subset"),
        ('label_replace(x, "a", "$1", "b", "(.*)")', "the function label_replace is outside the subset"),
        ("quantile(0.5, x)", "the aggregation quantile is outside the subset"),
        ('count_values("v", x)', "the aggregation count_values is outside the subset"),
        ("sum by (__name__) (x)", "grouping by __name__ is outside the subset"),
        ("x + on (__name__) y", "grouping by __name__ is outside the subset"),
        ('x{a=~"[[:alpha:]]+"}', "is not read alike everywhere"),
        (r'x{a=~"\\pL"}', "is not read alike everywhere"),
        ('"text"', "a StringLiteral is outside the subset"),
        ("x >", "x >: "),
        ("rate(x)", "expected type matrix"),
        ("nosuch(x)", "unknown function"),
        ("1 > 2", "comparisons between scalars must use BOOL"),
    ],
)
def test_what_is_outside_the_subset_is_named_in_one_line(expr, words):
    with pytest.raises(PromqlError) as refused:
        compile_expr(expr)
    assert words.lower() in str(refused.value).lower()
    assert "\n" not in str(refused.value)


def test_every_alert_of_the_catalogue_is_within_the_subset():
    for alert in ALERTS:
        compile_expr(alert.expr)


def test_what_is_needed_of_the_past_is_the_longest_that_any_part_looks_back():
    one = compile_expr("rate(a[10m]) > 2 and on () (b offset 1h) or increase(a[30m] offset 5m) > vector(1)")
    assert one.needs == {"a": 2100, "b": 3900}
    assert needs_of([one, compile_expr("a + c + max_over_time(b[2h])")]) == {"a": 2100, "b": 7200, "c": 300}


@pytest.mark.parametrize("pattern", ["a|b", "dns.*", r"a\.b", "(?:x|y)+", "[a-z_]+", "(?i)cut", "x?", ".+", "", r"\d+"])
def test_the_patterns_of_alerts_are_read(pattern):
    anchored(pattern)


def test_a_pattern_means_the_whole_value():
    assert anchored("a|b").fullmatch("ab") is None
    assert anchored("a.b").fullmatch("a\nb")


def test_expressions_over_nothing_yield_nothing_and_do_not_fail():
    nothing = Series({})
    for alert in ALERTS:
        found = compile_expr(alert.expr).evaluate(nothing, 1.79e9)
        assert not found or "absent" in alert.expr or "vector(1)" in alert.expr, alert.name


NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1)


@given(NUMBERS, st.floats(min_value=0, max_value=1))
def test_a_quantile_lies_between_the_lowest_and_the_highest(values, share):
    slack = 1e-9 * max(map(abs, values))
    assert min(values) - slack <= quantile(share, values) <= max(values) + slack
    assert quantile(0, values) == min(values)
    assert quantile(1, values) == max(values)


COUNTS = st.lists(st.integers(min_value=0, max_value=1000), min_size=3, max_size=8).map(sorted)


SHARES = st.floats(min_value=1e-6, max_value=1)


@given(COUNTS.filter(lambda counts: counts[-1] > 0), SHARES, SHARES)
def test_a_quantile_of_a_histogram_grows_with_the_share_and_lies_within_its_bounds(counts, one, other):
    bounds = [*map(str, range(1, len(counts))), "+Inf"]
    buckets = {frozenset({("le", bound)}): float(count) for bound, count in zip(bounds, counts, strict=True)}
    low, high = (histogram_quantile(share, buckets)[frozenset()] for share in sorted((one, other)))
    assert 0 <= low <= high + 1e-9 <= len(counts)
