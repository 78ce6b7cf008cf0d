"""An alert folded over its past fires when Prometheus would have."""

from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.alerting import Alert, Severity
from pinchpoint.alerting.backtest import Backtest, Firing, evaluation_times, firing_seconds

A, B = (frozenset({("engine", name)}) for name in "ab")


def alert(wait=0, keep=0):
    return Alert(
        name="A",
        expr="x",
        severity=Severity.INFO,
        summary="",
        description="",
        for_seconds=wait,
        keep_firing_for_seconds=keep,
    )


def fired(one, results, interval=60):
    test = Backtest(one)
    for number, labels in enumerate(results):
        test.look(number * interval, dict.fromkeys(labels, 1.0))
    return [(dict(f.labels)["engine"], f.fired_at, f.ended_at) for f in test.firings()]


def test_it_fires_once_it_has_held_for_long_enough_and_ends_with_its_cause():
    assert fired(alert(wait=120), [[], [A], [A], [A], [A], []]) == [("a", 180, 300)]
    assert fired(alert(wait=120), [[], [A], [A], [], [A], [A], []]) == []


def test_without_a_wait_it_fires_at_once_and_twice_where_the_cause_comes_twice():
    assert fired(alert(), [[A], [], [A, B], []]) == [("a", 0, 60), ("a", 120, 180), ("b", 120, 180)]


def test_it_is_kept_firing_over_a_pause():
    assert fired(alert(keep=120), [[A], [], [A], [], [], [], []]) == [("a", 0, 300)]


def test_what_fires_until_the_end_has_no_end():
    assert fired(alert(wait=60), [[A], [A], [A]]) == [("a", 60, None)]


def test_time_in_which_two_of_it_fire_counts_once():
    firings = [Firing(labels=A, fired_at=0, ended_at=100), Firing(labels=B, fired_at=50, ended_at=None)]
    assert firing_seconds(firings, 300) == 300
    assert firing_seconds([], 300) == 0
    assert firing_seconds([*firings, Firing(labels=A, fired_at=20, ended_at=30)], 120) == 120


def test_evaluations_are_multiples_of_the_interval():
    assert evaluation_times(1_790_000_010.5, 1_790_000_190, 60) == [1_790_000_040, 1_790_000_100, 1_790_000_160]


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 5), st.integers(0, 5))
def test_whatever_the_course_it_fires_as_told_by_the_definition(course, wait, keep):
    """The definition: true for ``wait`` intervals on end; over when it was not true for ``keep`` after that."""
    expected, begun, since, over = [], None, None, None
    for number, holds in enumerate(course):
        if holds:
            since, over = number if since is None else since, None
            if begun is None and number - since >= wait:
                begun = number
        else:
            since = None
            over = number if over is None else over
            if begun is not None and number - over >= keep:
                expected.append(("a", begun * 60, number * 60))
                begun = None
    if begun is not None:
        expected.append(("a", begun * 60, None))
    assert fired(alert(wait * 60, keep * 60), [[A] if holds else [] for holds in course]) == expected
