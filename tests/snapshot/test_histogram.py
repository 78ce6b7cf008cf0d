"""A histogram: what was observed since, both together, quantiles as PromQL computes them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import Histogram, Quantile

INF = math.inf


def histogram(*observations: float, bounds: tuple[float, ...] = (1.0, 2.0, 4.0, INF)) -> Histogram:
    counts = tuple(float(sum(value <= bound for value in observations)) for bound in bounds)
    return Histogram(bounds, counts, math.fsum(observations), float(len(observations)))


def test_since_is_what_was_observed_in_between() -> None:
    earlier, later = histogram(0.5), histogram(0.5, 3.0, 1.5)
    assert later.since(earlier) == Histogram((1.0, 2.0, 4.0, INF), (0.0, 1.0, 2.0, 2.0), 4.5, 2.0)


def test_a_count_that_fell_is_a_reset_and_has_no_difference() -> None:
    assert histogram(0.5).since(histogram(0.5, 3.0)) is None


def test_a_sum_that_falls_while_the_count_rises_is_no_reset_and_its_mean_is_not_negative() -> None:
    delta = histogram(0.5, -3.0).since(histogram(0.5))
    assert delta is not None
    assert delta.sum == -3.0
    assert delta.mean == 0.0


def test_changed_buckets_have_no_difference_and_no_sum() -> None:
    other = histogram(0.5, bounds=(1.0, INF))
    assert histogram(0.5).since(other) is None
    assert histogram(0.5).plus(other) is None


def test_a_quantile_interpolates_within_its_bucket() -> None:
    # Four observations in (1, 2]: PromQL's histogram_quantile(0.5) is 1 + 1 * 2/4.
    assert histogram(1.1, 1.2, 1.3, 1.4).quantile(0.5) == Quantile(1.5, 1.0, 2.0)


def test_a_quantile_in_the_lowest_bucket_is_at_most_its_bound_and_no_number() -> None:
    assert histogram(0.1, 0.2, 3.0).quantile(0.5) == Quantile(None, None, 1.0)


def test_a_quantile_beyond_the_last_bound_is_at_least_that_bound_and_no_number() -> None:
    assert histogram(100.0, 200.0).quantile(0.99) == Quantile(None, 4.0, None)


def test_a_histogram_of_one_bucket_has_no_quantile() -> None:
    assert histogram(1.0, bounds=(INF,)).quantile(0.5) is None


def test_nothing_observed_has_no_mean_and_no_quantile() -> None:
    assert histogram().mean is None
    assert histogram().quantile(0.5) is None


@given(st.lists(st.floats(0, 10)), st.lists(st.floats(0, 10)))
def test_what_was_added_is_what_since_gives_back(first: list[float], second: list[float]) -> None:
    before, added = histogram(*first), histogram(*second)
    after = before.plus(added)
    assert after is not None
    difference = after.since(before)
    assert difference is not None
    assert difference.counts == added.counts
    assert math.isclose(difference.sum, added.sum, abs_tol=1e-9)


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_with_their_rank(observations: list[float], a: float, b: float) -> None:
    low, high = histogram(*observations).quantile(min(a, b)), histogram(*observations).quantile(max(a, b))
    assert low is not None
    assert high is not None
    assert (low.at_least or 0.0) <= (high.at_least or 0.0)
    assert (low.at_most or INF) <= (high.at_most or INF)
    if low.value is not None and high.value is not None:
        assert low.value <= high.value


def counted(*counts: float) -> Histogram:
    return Histogram((1.0, 2.0, float("inf")), counts, 0.0, counts[-1])


@pytest.mark.parametrize(
    ("seconds", "share"), [(0.0, 0.0), (-3.0, 0.0), (0.5, 0.2), (1.0, 0.4), (1.5, 0.6), (2.0, 0.8), (50.0, 0.8)]
)
def test_it_is_interpolated_within_a_bucket_and_the_open_one_is_beyond(seconds: float, share: float) -> None:
    assert counted(4, 8, 10).share_within(seconds) == pytest.approx(share)


def test_everything_is_within_infinity() -> None:
    assert counted(4, 8, 10).share_within(float("inf")) == 1.0


def test_of_nothing_there_is_no_share() -> None:
    assert counted(0, 0, 0).share_within(1.0) is None


@given(
    st.lists(st.tuples(*[st.integers(0, 50)] * 3), min_size=1, max_size=8),
    st.floats(-1.0, 5.0, allow_nan=False),
)
def test_what_is_within_never_shrinks_while_observations_come(steps: list[tuple[int, int, int]], value: float) -> None:
    counts, within = [0, 0, 0], 0.0
    for step in steps:
        counts = [count + sum(step[: at + 1]) for at, count in enumerate(counts)]
        now = counted(*counts).count_within(value)
        assert now is not None
        assert within <= now <= counts[-1]
        within = now


def test_without_buckets_nobody_knows_how_many_are_within() -> None:
    assert Histogram((), (), 1.0, 2.0).count_within(1.0) is None
