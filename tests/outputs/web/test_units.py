"""Numbers as people read them."""

import pytest

from pinchpoint.outputs.web import units


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.00831, "8.31 ms"), (0.042, "42.0 ms"), (0.24, "240 ms"), (0.9999, "1.00 s"), (1.24, "1.24 s"), (12.4, "12.4 s"),
     (124, "124 s"), (None, "–")],
)  # fmt: skip
def test_a_latency_has_three_digits(seconds: float | None, shown: str) -> None:
    assert units.latency(seconds).replace("\N{NO-BREAK SPACE}", " ") == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (42.9, "42 s"), (200, "3 min 20 s"), (7500, "2 h 5 min"), (3600, "1 h"), (273_600, "3 d 4 h")],
)
def test_a_duration_has_its_two_largest_units(seconds: float, shown: str) -> None:
    assert units.duration(seconds).replace("\N{NO-BREAK SPACE}", " ") == shown


def test_unknown_is_a_dash_and_zero_is_zero() -> None:
    assert (units.ratio(None), units.count(None), units.celsius(None)) == ("–", "–", "–")
    assert (units.ratio(0.0), units.count(0)) == ("0\N{NO-BREAK SPACE}%", "0")
