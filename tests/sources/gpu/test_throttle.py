"""The ledger of throttled time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import ThrottleReason
from pinchpoint.sources.gpu.throttle import ThrottleLedger

CAP, SLOWDOWN = ThrottleReason.SW_POWER_CAP, ThrottleReason.HW_SLOWDOWN


def test_a_reason_that_a_sample_saw_counts_until_the_next_sample() -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    assert ledger.account(10, {SLOWDOWN: 1.0}, {}) == {SLOWDOWN: 0.0}
    assert ledger.account(11, {SLOWDOWN: 1.0}, {}) == {SLOWDOWN: 1.0}
    assert ledger.account(13, {SLOWDOWN: 0.0}, {}) == {SLOWDOWN: 3.0}
    assert ledger.account(14, {SLOWDOWN: 0.0}, {}) == {SLOWDOWN: 3.0}


def test_time_in_which_nobody_looked_is_not_counted() -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    ledger.account(10, {SLOWDOWN: 1.0}, {})
    assert ledger.account(3610, {SLOWDOWN: 1.0}, {}) == {SLOWDOWN: 0.0}


def test_the_drivers_own_counter_wins_and_stays_over_a_cycle_without_it() -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    assert ledger.account(10, {CAP: 1.0}, {CAP: 51.5}) == {CAP: 51.5}
    assert ledger.account(11, {CAP: 1.0}, {}) == {CAP: 51.5}
    assert ledger.account(12, {CAP: 1.0}, {CAP: 53.0}) == {CAP: 53.0}


def test_the_drivers_counter_may_restart() -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    ledger.account(10, {}, {CAP: 51.5})
    assert ledger.account(11, {}, {CAP: 0.5}) == {CAP: 0.5}


@given(st.lists(st.tuples(st.floats(0, 20), st.sampled_from([0.0, 1.0])), max_size=40))
def test_sampled_time_never_falls_and_never_runs_faster_than_the_clock(samples: list[tuple[float, float]]) -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    at, before = 0.0, 0.0
    for gap, active in samples:
        at += gap
        total = ledger.account(at, {SLOWDOWN: active}, {})[SLOWDOWN]
        assert before <= total <= before + gap * (1 + 1e-9) + 1e-9
        before = total
    assert before <= at + 1e-6


def test_an_unknown_sample_counts_for_nothing() -> None:
    ledger = ThrottleLedger(longest_gap_seconds=6)
    ledger.account(10, {SLOWDOWN: 1.0}, {})
    ledger.account(11, {}, {})
    assert ledger.account(12, {SLOWDOWN: 1.0}, {}) == {SLOWDOWN: pytest.approx(0.0)}
