"""The share of a histogram's observations within a value."""

import pytest

from pinchpoint.snapshot import Histogram


def of(*counts: float) -> Histogram:
    return Histogram((1.0, 2.0, float("inf")), counts, 0.0, counts[-1])


@pytest.mark.parametrize(
    ("seconds", "share"), [(0.0, 0.0), (-3.0, 0.0), (0.5, 0.2), (1.0, 0.4), (1.5, 0.6), (2.0, 0.8), (50.0, 0.8)]
)
def test_it_is_interpolated_within_a_bucket_and_the_open_one_is_beyond(seconds: float, share: float) -> None:
    assert of(4, 8, 10).share_within(seconds) == pytest.approx(share)


def test_everything_is_within_infinity() -> None:
    assert of(4, 8, 10).share_within(float("inf")) == 1.0


def test_of_nothing_there_is_no_share() -> None:
    assert of(0, 0, 0).share_within(1.0) is None
