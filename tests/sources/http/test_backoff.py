"""How often something that fails is asked, in simulated time."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.http.backoff import Backoff


def asked(fails: Sequence[bool], interval: float, ticks: int, longest: float = 60.0) -> list[int]:
    """The numbers of the intervals at which it was asked; ``fails`` says what came of each asking."""
    backoff, outcomes, numbers = Backoff(interval), iter(fails), []
    for number in range(ticks):
        if backoff.is_due(now := number * interval):
            numbers.append(number)
            if next(outcomes, False):
                backoff.failed(now, longest)
            else:
                backoff.succeeded()
    return numbers


def test_what_answers_is_asked_at_every_interval():
    assert asked([False] * 5, 5.0, 5) == [0, 1, 2, 3, 4]


def test_what_fails_is_asked_ever_less_often_and_at_least_once_a_minute():
    assert asked([True] * 9, 5.0, 48) == [0, 1, 3, 7, 15, 27, 39]


def test_one_answer_and_the_interval_holds_again():
    assert asked([True, True, True, False], 5.0, 12) == [0, 1, 3, 7, 8, 9, 10, 11]


def test_an_interval_longer_than_the_longest_pause_is_the_floor():
    assert asked([True] * 4, 120.0, 4) == [0, 1, 2, 3]


def test_a_caller_who_comes_a_little_early_is_not_sent_away():
    backoff = Backoff(5.0)
    backoff.failed(0.02)
    assert backoff.is_due(4.98)


@given(st.lists(st.booleans(), max_size=50), st.floats(0.5, 300), st.floats(1, 100))
def test_no_pause_is_longer_than_the_longest_or_the_interval(fails: list[bool], interval: float, longest: float):
    numbers = asked(fails, interval, 200, longest)
    pauses = [(after - before) * interval for before, after in pairwise(numbers)]
    assert all(pause <= max(longest + interval / 2, interval) for pause in pauses)
