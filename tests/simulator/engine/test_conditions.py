"""When a thread gets its CPU time, of which there is some at the beginning of each period."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.simulator.engine.conditions import Conditions

QUARTER = Conditions(cpu_share=0.25, cpu_period_seconds=0.1)  # runs 25 ms, stands still for 75


@pytest.mark.parametrize(
    ("now", "cpu_seconds", "took"),
    [
        (10.000, 0.010, 0.010),  # within what is left of the share
        (10.020, 0.010, 0.085),  # 5 ms now, 75 of standing still, 5 ms
        (10.050, 0.010, 0.060),  # 50 ms of standing still, then all of it
        (10.000, 0.060, 0.210),  # 25 + 75 + 25 + 75 + 10
        (10.050, 0.0, 0.0),  # who wants nothing waits for nothing
    ],
)
def test_a_thread_runs_in_its_share_and_waits_in_the_rest(now, cpu_seconds, took):
    assert QUARTER.host_seconds(now, cpu_seconds) == pytest.approx(took)


def test_with_all_of_the_time_it_never_waits():
    assert Conditions().host_seconds(10.05, 0.7) == 0.7


@given(now=st.floats(0, 1e4), cpu_seconds=st.floats(1e-4, 2), share=st.floats(0.05, 0.99), period=st.floats(0.003, 0.1))
def test_it_takes_at_least_its_time_and_at_most_one_stop_more_than_the_share_says(now, cpu_seconds, share, period):
    took = Conditions(cpu_share=share, cpu_period_seconds=period).host_seconds(now, cpu_seconds)
    stop = (1 - share) * period
    assert max(cpu_seconds, cpu_seconds / share - stop) - 1e-6 <= took <= cpu_seconds / share + stop + 1e-6
