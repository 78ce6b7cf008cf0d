"""What is shown changes only for what lasts."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.diagnosis import Bottleneck, Diagnosis, Settled, Thresholds, settle, tally
from pinchpoint.diagnosis.verdict import Objective

THRESHOLDS = Thresholds()
FAST = {Bottleneck.NO_DATA, Bottleneck.HARDWARE, Bottleneck.STALLED, Bottleneck.SLEEPING}


def seen(bottleneck: Bottleneck, at: float, scrapes: float = 10.0, collecting: bool = False) -> Diagnosis:
    return Diagnosis(
        engine="chat",
        at=at,
        bottleneck=bottleneck,
        why=bottleneck,
        confidence_ratio=1.0,
        signals={"scrapes": scrapes},
        ttft=Objective(slo_seconds=2.0, judged_seconds=at),
        collecting=collecting,
    )


def shown(sequence: list[Bottleneck]) -> list[Settled]:
    settled, states = None, []
    for second, bottleneck in enumerate(sequence):
        settled = settle(settled, seen(bottleneck, float(second)), THRESHOLDS)
        states.append(settled)
    return states


def test_a_short_episode_is_not_shown() -> None:
    states = shown([Bottleneck.HEALTHY] * 5 + [Bottleneck.SCHEDULER] * 9 + [Bottleneck.HEALTHY] * 5)

    assert {state.diagnosis.bottleneck for state in states} == {Bottleneck.HEALTHY}
    assert states[-1].candidate is None


def test_a_lasting_class_is_shown_since_it_was_first_seen() -> None:
    states = shown([Bottleneck.HEALTHY] * 5 + [Bottleneck.KV_CAPACITY] * 11)

    assert states[14].diagnosis.bottleneck is Bottleneck.HEALTHY
    assert states[14].candidate is Bottleneck.KV_CAPACITY
    assert states[15].diagnosis.bottleneck is Bottleneck.KV_CAPACITY
    assert states[15].since == 5.0


def test_a_lost_card_is_shown_within_two_seconds() -> None:
    states = shown([Bottleneck.HEALTHY] * 5 + [Bottleneck.HARDWARE] * 3)

    assert states[-1].diagnosis.bottleneck is Bottleneck.HARDWARE


def test_the_first_verdict_is_shown_at_once() -> None:
    collecting = settle(None, seen(Bottleneck.UNKNOWN, 0.0, collecting=True), THRESHOLDS)

    assert settle(collecting, seen(Bottleneck.IDLE, 1.0), THRESHOLDS).diagnosis.bottleneck is Bottleneck.IDLE


def test_a_held_class_keeps_its_words_and_shows_the_newest_signals() -> None:
    held = settle(None, seen(Bottleneck.HEALTHY, 0.0), THRESHOLDS)

    state = settle(held, seen(Bottleneck.SCHEDULER, 1.0, scrapes=11.0), THRESHOLDS)

    assert state.diagnosis.why == "healthy"
    assert state.diagnosis.signals == {"scrapes": 11.0}
    assert state.diagnosis.at == 1.0
    assert state.diagnosis.ttft == Objective(slo_seconds=2.0, judged_seconds=1.0)


def test_a_class_that_is_never_seen_again_gives_way_even_to_a_quarrel() -> None:
    quarrel = [Bottleneck.KV_CAPACITY, Bottleneck.SCHEDULER] * 20

    assert shown([Bottleneck.HEALTHY, *quarrel])[-1].diagnosis.bottleneck is not Bottleneck.HEALTHY


@given(st.lists(st.sampled_from(list(Bottleneck)), min_size=1, max_size=80))
def test_an_ordinary_class_never_takes_over_faster_than_its_hold(sequence: list[Bottleneck]) -> None:
    for before, after in pairwise(shown(sequence)):
        new = after.diagnosis.bottleneck
        if new is not before.diagnosis.bottleneck:
            fast = new in FAST or before.diagnosis.bottleneck in {Bottleneck.UNKNOWN, Bottleneck.NO_DATA}
            waited = after.diagnosis.at - (before.contested_since or 0.0)
            assert waited >= (THRESHOLDS.fast_hold_seconds if fast else THRESHOLDS.hold_seconds)


def test_the_lull_between_two_bursts_is_no_recovery() -> None:
    burst, lull = [Bottleneck.COMPUTE] * 5, [Bottleneck.HEALTHY] * 40

    assert {state.diagnosis.bottleneck for state in shown([*burst, *lull, *burst, *lull])} == {Bottleneck.COMPUTE}
    assert shown([*burst, *lull, *lull])[-1].diagnosis.bottleneck is Bottleneck.HEALTHY


@given(st.lists(st.sampled_from(list(Bottleneck)), max_size=40), st.sampled_from(list(Bottleneck)))
def test_what_lasts_is_always_shown_in_the_end(before: list[Bottleneck], lasting: Bottleneck) -> None:
    state = shown([*before, *[lasting] * 61])[-1]

    assert state.diagnosis.bottleneck is lasting
    assert state.candidate is None


@pytest.mark.parametrize(("gap", "since"), [(60.0, 0.0), (THRESHOLDS.resume_seconds + 1, 3.0 + 601.0)])
def test_after_a_gap_the_same_class_goes_on_unless_the_gap_was_long(gap: float, since: float) -> None:
    before = shown([Bottleneck.KV_CAPACITY] * 3)[-1]
    counting = settle(before, seen(Bottleneck.UNKNOWN, 2.0 + gap, collecting=True), THRESHOLDS)
    after = settle(counting, seen(Bottleneck.KV_CAPACITY, 3.0 + gap), THRESHOLDS)

    assert counting.diagnosis.bottleneck is Bottleneck.UNKNOWN, "what was seen before the gap is no evidence of now"
    assert after.since == since


def test_a_candidate_from_before_a_gap_has_not_lasted_through_it() -> None:
    before = shown([Bottleneck.HEALTHY] * 5 + [Bottleneck.SCHEDULER])[-1]

    state = settle(before, seen(Bottleneck.SCHEDULER, 305.0), THRESHOLDS)

    assert (state.diagnosis.bottleneck, state.since) == (Bottleneck.SCHEDULER, 305.0)


def test_an_engine_that_stays_away_after_a_gap_begins_anew() -> None:
    state = shown([Bottleneck.KV_CAPACITY] * 3)[-1]
    for second in range(100):
        state = settle(state, seen(Bottleneck.NO_DATA, 100.0 + second), THRESHOLDS)
    back = [settle(state, seen(Bottleneck.KV_CAPACITY, 200.0), THRESHOLDS)]
    for second in range(3):
        back.append(settle(back[-1], seen(Bottleneck.KV_CAPACITY, 201.0 + second), THRESHOLDS))

    assert back[-1].since == 200.0


def test_scrapes_that_come_once_a_minute_are_no_gaps() -> None:
    before = settle(None, seen(Bottleneck.HEALTHY, 0.0), THRESHOLDS, step_seconds=60.0)

    blip = settle(before, seen(Bottleneck.SCHEDULER, 60.0), THRESHOLDS, step_seconds=60.0)

    assert blip.diagnosis.bottleneck is Bottleneck.HEALTHY


def test_seconds_go_to_the_class_that_is_shown() -> None:
    state = settle(None, seen(Bottleneck.HEALTHY, 0.0), THRESHOLDS)

    seconds = tally(tally({}, [state], 2.0), [state], 3.0)

    assert seconds == {("chat", Bottleneck.HEALTHY): 5.0}
