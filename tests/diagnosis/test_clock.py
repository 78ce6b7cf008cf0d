"""What a slow clock costs, whatever a card says of its clock."""

import pytest

from pinchpoint.diagnosis.clock import quicker_at_full_clock, slowdown
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds


@pytest.mark.parametrize("clock", [1.0, 1.5, 1e300, float("inf")])
def test_a_clock_at_or_above_its_maximum_costs_nothing(clock: float) -> None:
    assert slowdown(clock, Signals(), Thresholds()) == 0.0
    assert quicker_at_full_clock(clock, Signals(), Thresholds()) == 1.0


def test_half_the_clock_makes_computing_take_twice_as_long() -> None:
    assert slowdown(0.5, Signals(), Thresholds()) == pytest.approx(1.0)
    assert quicker_at_full_clock(0.5, Signals(), Thresholds()) == pytest.approx(2.0)


@pytest.mark.parametrize("clock", [0.0, -1e300])
def test_a_clock_that_makes_no_sense_is_the_slowest_there_is(clock: float) -> None:
    assert slowdown(clock, Signals(), Thresholds()) == pytest.approx(99.0)
