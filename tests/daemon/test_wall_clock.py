"""Unix time from a monotonic clock: steady, and never wrong by more than it may."""

from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.daemon.wall_clock import STEADY_SECONDS, WallClock


def test_two_clocks_read_one_after_the_other_give_one_offset() -> None:
    unix = iter([1000.0, 1001.0004, 1002.00001])
    clock = iter([0.0, 1.0, 2.0])
    wall = WallClock(lambda: next(clock), lambda: next(unix))
    assert {wall.offset() for _ in range(3)} == {1000.0}


@given(st.lists(st.floats(-1e6, 1e6)))
def test_a_clock_that_is_set_or_drifts_is_followed(truths: list[float]) -> None:
    now = [0.0]
    wall = WallClock(lambda: 0.0, lambda: now[0])
    for truth in truths:
        now[0] = truth
        assert abs(wall.offset() - truth) < STEADY_SECONDS
