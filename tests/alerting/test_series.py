"""What is kept of the past, and for how long; what is gone at once; what happens beyond the limits."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.alerting.promql import compile_expr
from pinchpoint.alerting.series import Series

T = 1_790_000_000.0
INTERVAL = 15.0


def series(needs=None, **more):
    return Series(needs or {"x": 300.0}, **more)


def sample(value=1.0, name="x", **labels):
    return name, tuple(labels), tuple(labels.values()), value


def values(kept, expr, now):
    return {dict(labels).get("a", ""): value for labels, value in compile_expr(expr).evaluate(kept, now).items()}


def test_a_series_that_is_missing_in_a_batch_is_gone_at_once_and_back_with_its_next_sample():
    kept = series()
    kept.append(T, [sample(1, a="1"), sample(2, a="2")])
    kept.append(T + 15, [sample(1, a="1")])
    assert values(kept, "x", T + 15) == {"1": 1}
    assert values(kept, "x", T + 14) == {"1": 1, "2": 2}
    assert values(kept, "count_over_time(x[1m])", T + 15) == {"1": 2, "2": 1}
    kept.append(T + 30, [sample(1, a="1"), sample(3, a="2")])
    assert values(kept, "x", T + 30) == {"1": 1, "2": 3}
    assert values(kept, "x", T + 29) == {"1": 1}


def test_when_nobody_appends_any_more_a_value_holds_for_five_minutes_and_no_longer():
    kept = series()
    kept.append(T, [sample()])
    assert values(kept, "x", T + 299.999) == {"": 1}
    assert values(kept, "x", T + 300) == {}


def test_a_range_has_its_end_and_not_its_start():
    kept = series()
    for n in range(9):
        kept.append(T + n * INTERVAL, [sample(n)])
    assert values(kept, "count_over_time(x[1m])", T + 120) == {"": 4}
    assert values(kept, "min_over_time(x[1m])", T + 120) == {"": 5}
    assert values(kept, "count_over_time(x[1m])", T + 119) == {"": 4}


@pytest.mark.parametrize(("first", "intervals_before"), [(1.0, 0.5), (0.75, 0.5), (0.25, 0.25), (0.0, 0.0)])
def test_a_counter_began_half_an_interval_before_its_first_sample_or_where_it_was_zero(first, intervals_before):
    """As Prometheus 3 has it; 2.x goes back to zero even if that is further."""
    kept = series()
    for n in range(3):
        kept.append(T + n * INTERVAL, [sample(first + n)])
    assert values(kept, "increase(x[5m])", T + 30) == {"": pytest.approx(2 + intervals_before)}


def test_a_fall_of_a_counter_is_a_reset():
    kept = series()
    for n, value in enumerate((100, 110, 4, 10, 2)):
        kept.append(T + n * INTERVAL, [sample(value)])
    assert values(kept, "increase(x[1m])", T + 60) == {"": pytest.approx((4 + 6 + 2) * 60 / 45)}
    assert values(kept, "resets(x[5m])", T + 60) == {"": 2}


def test_names_that_nobody_asks_for_are_not_kept():
    kept = series()
    kept.append(T, [sample(), sample(name="y")])
    assert len(kept) == 1
    assert kept.names == {"x"}


def test_target_labels_are_on_every_series_and_an_empty_label_is_none():
    kept = series(target_labels={"job": "j", "instance": ""})
    kept.append(T, [sample(a="1", b="")])
    assert set(compile_expr("x").evaluate(kept, T)) == {frozenset({("a", "1"), ("job", "j")})}


def test_a_new_series_beyond_the_limit_is_refused_and_counted_and_the_others_go_on():
    kept = series(max_series=2)
    kept.append(T, [sample(a=str(n)) for n in range(5)])
    assert (len(kept), kept.refused_series) == (2, 3)
    kept.append(T + 15, [sample(2, a=str(n)) for n in range(2)])
    assert kept.refused_series == 0
    assert values(kept, "x", T + 15) == {"0": 2, "1": 2}


def test_a_series_that_is_long_gone_makes_room():
    kept = series(max_series=1)
    kept.append(T, [sample(a="1")])
    for n in range(1, 30):
        kept.append(T + n * INTERVAL, [sample(a="2")])
    assert len(kept) == 1
    assert values(kept, "x", T + 29 * INTERVAL) == {"2": 1}


def test_beyond_the_limit_of_samples_the_oldest_go_and_are_counted():
    kept = series({"x": 1e6}, max_samples=100)
    for n in range(1000):
        kept.append(T + n, [sample(n)])
    (count,) = values(kept, "count_over_time(x[10d])", T + 1000).values()
    assert 100 <= count <= 125
    assert kept.cut_samples == 1000 - count
    assert values(kept, "x", T + 1000) == {"": 999}


def test_samples_that_are_older_than_any_expression_looks_back_go():
    kept = series()
    for n in range(1000):
        kept.append(T + n * INTERVAL, [sample(n)])
    now = T + 999 * INTERVAL
    (count,) = values(kept, "count_over_time(x[1d])", now).values()
    assert 20 <= count <= 26
    assert kept.cut_samples == 0
    assert values(kept, "count_over_time(x[5m])", now) == {"": 20}


def test_a_clock_that_was_set_back_takes_what_lies_in_its_future():
    kept = series({"x": 600.0})
    for n in range(20):
        kept.append(T + n * INTERVAL, [sample(n, a="1"), *([sample(n, a="2")] if n > 10 else [])])
    kept.append(T + 5 * INTERVAL, [sample(-1, a="1")])
    assert values(kept, "x", T + 5 * INTERVAL) == {"1": -1}
    assert values(kept, "count_over_time(x[10m])", T + 5 * INTERVAL) == {"1": 6}
    assert len(kept) == 1


def test_of_two_samples_of_one_series_the_first_counts():
    kept = series()
    kept.append(T, [sample(1), sample(2)])
    assert values(kept, "x", T) == {"": 1}
    assert values(kept, "count_over_time(x[1m])", T) == {"": 1}


BATCHES = st.lists(
    st.tuples(
        st.integers(min_value=-40_000, max_value=200_000),  # milliseconds to the next batch: the clock may go back
        st.dictionaries(st.sampled_from("abc"), st.sampled_from([0.0, 1.0, 2.5, -1.0, math.nan])),
    ),
    max_size=40,
)


@given(BATCHES, st.integers(min_value=0, max_value=400_000))
def test_whatever_comes_it_is_what_a_plain_list_of_all_samples_says(batches, later):
    """The model: every batch since the last step back of the clock, searched from the start."""
    kept = series({"x": 400.0})
    at, told = 1_790_000_000_000, []
    for step, batch in batches:
        at += step
        told = [(then, old) for then, old in told if then < at]
        told.append((at, batch))
        kept.append(at / 1000, [sample(value, a=name) for name, value in batch.items()])
    now = at + later
    ranged, newest = {}, {}
    for then, batch in told:
        newest = {name: (then, value) for name, value in batch.items()}
        for name in batch:
            ranged[name] = ranged.get(name, 0) + (now - 400_000 < then)
    expected = {name: value for name, (then, value) in newest.items() if then > now - 300_000}
    assert repr(sorted(values(kept, "x", now / 1000).items())) == repr(sorted(expected.items()))
    counts = {name: count for name, count in ranged.items() if count}
    assert values(kept, "count_over_time(x[400s])", now / 1000) == counts
