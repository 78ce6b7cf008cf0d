"""Whatever is seen, and however the ticks come: what is shown is steady, in time, and never older than its evidence."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pinchpoint.diagnosis import (
    Bottleneck,
    Diagnosis,
    Settled,
    Thresholds,
    diagnose,
    lengthened,
    settle,
    tally,
    watched,
)
from tests.diagnosis.case import Case, load

THRESHOLDS = Thresholds()
HOLD, FAST_HOLD = THRESHOLDS.hold_seconds, THRESHOLDS.fast_hold_seconds
RECOVERY = THRESHOLDS.recovery_hold_seconds
FAST = {Bottleneck.NO_DATA, Bottleneck.HARDWARE, Bottleneck.STALLED, Bottleneck.SLEEPING}
SOON_LEFT = {Bottleneck.UNKNOWN, Bottleneck.NO_DATA}
classes = st.sampled_from(list(Bottleneck))
ticks = st.sampled_from([0.2, 1.0, 2.0, 5.0])


class Shown(RuleBasedStateMachine):
    """Ticks of any pace with any classes, with gaps; each rule is something that happens to an engine."""

    @initialize(first=classes, at=st.sampled_from([0.0, 1e6]))
    def begins(self, first: Bottleneck, at: float) -> None:
        self.began = self.at = at
        self.watched_seconds = 0.0
        self.changed_at = at
        self.settled = settle(None, self._seen(first), THRESHOLDS)
        self.course = lengthened((), None, self.settled)
        self.seconds = tally({}, [self.settled], 0.0)

    def _seen(self, bottleneck: Bottleneck, *, collecting: bool = False) -> Diagnosis:
        bottleneck = Bottleneck.UNKNOWN if collecting else bottleneck
        return Diagnosis(
            engine="chat", at=self.at, bottleneck=bottleneck, why="so", confidence_ratio=1.0, collecting=collecting
        )

    def _tick(self, bottleneck: Bottleneck, later: float, *, collecting: bool = False) -> None:
        before, was = self.settled, self.at
        self.at += later
        gap = not watched(was, self.at, THRESHOLDS)
        self.settled = settle(before, self._seen(bottleneck, collecting=collecting), THRESHOLDS)
        self.course = lengthened(self.course, before, self.settled, gap=gap)
        elapsed = 0.0 if gap else later
        self.watched_seconds += elapsed
        self.seconds = tally(self.seconds, [self.settled], elapsed)
        self._changes_at_most_once_per_hold(before, gap=gap)

    def _changes_at_most_once_per_hold(self, before: Settled, *, gap: bool) -> None:
        old, new = before.diagnosis.bottleneck, self.settled.diagnosis.bottleneck
        if new is not old and not (gap or before.diagnosis.collecting or before.earlier):
            hold = FAST_HOLD if new in FAST or old in SOON_LEFT else HOLD
            assert self.at - self.changed_at >= hold - 1e-6, (old, new)
        if new is not old or gap:
            self.changed_at = self.at

    @rule(bottleneck=classes, later=ticks)
    def is_seen(self, bottleneck: Bottleneck, later: float) -> None:
        self._tick(bottleneck, later)

    @rule(bottleneck=classes, later=ticks)
    def lasts(self, bottleneck: Bottleneck, later: float) -> None:
        """Shown within its hold, and a tick."""
        begun = self.at + later
        self._tick(bottleneck, later)
        while self.at < begun + (RECOVERY if bottleneck is Bottleneck.HEALTHY else HOLD) + 1e-6:  # sums of floats
            self._tick(bottleneck, later)
        assert self.settled.diagnosis.bottleneck is bottleneck
        assert self.settled.candidate is None

    @rule(one=classes, other=classes, later=ticks, times=st.integers(2, 40))
    def flickers(self, one: Bottleneck, other: Bottleneck, later: float, times: int) -> None:
        """Two classes take turns, tick by tick: it is settled once, and never flaps."""
        shown = []
        for number in range(times):
            self._tick((one, other)[number % 2], later)
            shown.append(self.settled.diagnosis.bottleneck)
        if later < (FAST_HOLD if {one, other} & (FAST | SOON_LEFT) else HOLD):  # else each has lasted
            # The class before may give way to one of the two, and that to the other where it was an unknown.
            assert sum(a is not b for a, b in pairwise(shown)) <= 2

    @rule(bottleneck=classes, later=st.sampled_from([20.5, 60.0, 300.0, 601.0, 86_400.0]))
    def is_seen_after_a_gap(self, bottleneck: Bottleneck, later: float) -> None:
        """Nothing is held on old evidence; a class that was there before goes on, where the gap is a short one."""
        before, until = self.settled, self.at
        self._tick(bottleneck, later)
        assert self.settled.diagnosis.bottleneck is bottleneck
        assert self.settled.diagnosis.at == self.at
        same = bottleneck is before.diagnosis.bottleneck and not before.diagnosis.collecting and before.earlier is None
        if same and self.at - until <= THRESHOLDS.resume_seconds:
            assert self.settled.since == before.since
        elif same:
            assert self.settled.since == self.at

    @rule(later=ticks, times=st.integers(1, 4), bottleneck=classes, gap=st.sampled_from([1.0, 30.0]))
    def begins_anew(self, later: float, times: int, bottleneck: Bottleneck, gap: float) -> None:
        """The engine's own restart: some ticks with too few scrapes, then a verdict, which is shown within its hold."""
        self._tick(Bottleneck.UNKNOWN, gap, collecting=True)
        for _ in range(times):
            self._tick(Bottleneck.UNKNOWN, later, collecting=True)
        self.lasts(bottleneck, later)

    @rule(back=st.sampled_from([0.5, 3600.0]), bottleneck=classes)
    def the_clock_goes_back(self, back: float, bottleneck: Bottleneck) -> None:
        """It never does in a daemon: what is shown is then what is seen, since now."""
        settled = settle(self.settled, replace(self._seen(bottleneck), at=self.at - back), THRESHOLDS)
        assert (settled.diagnosis.bottleneck, settled.since) == (bottleneck, self.at - back)

    @invariant()
    def no_time_is_negative_or_in_the_future(self) -> None:
        settled = self.settled
        assert self.began <= settled.since <= self.at
        for moment in (settled.candidate_since, settled.contested_since):
            assert moment is None or settled.since <= moment <= self.at
        assert settled.candidate is not settled.diagnosis.bottleneck

    @invariant()
    def every_second_that_somebody_looked_is_in_one_class_and_no_other(self) -> None:
        assert sum(self.seconds.values()) <= self.watched_seconds + 1e-6
        assert abs(sum(self.seconds.values()) - self.watched_seconds) < 1e-6 * max(1.0, self.watched_seconds)
        assert all(seconds >= 0 for seconds in self.seconds.values())

    @invariant()
    def the_course_runs_forward_and_ends_in_what_is_shown(self) -> None:
        assert self.course[-1].bottleneck is self.settled.diagnosis.bottleneck
        assert self.course[-1].end == self.at
        assert self.course[0].start >= self.began
        for before, after in pairwise(self.course):
            assert before.start <= before.end <= after.start
            assert before.bottleneck is not after.bottleneck or before.end < after.start
        looked = sum(each.end - each.start for each in self.course)
        assert abs(looked - self.watched_seconds) < 1e-6 * max(1.0, self.watched_seconds, self.at)


TestShown = Shown.TestCase
TestShown.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


CASES = [load(path) for path in sorted((Path(__file__).parent / "cases").glob("*.yaml"))]


def named(case: Case, held: Bottleneck | None, thresholds: Thresholds = THRESHOLDS) -> Diagnosis:
    return diagnose(case.window, "chat", case.snapshots[-1].at, thresholds, held=held)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_rival_must_be_better_by_a_margin_to_take_the_place_of_the_class_shown(case: Case) -> None:
    fresh = named(case, None)
    for held in Bottleneck:
        beside = named(case, held)
        if beside.bottleneck is not fresh.bottleneck:
            assert beside.bottleneck is held
            best = max(fresh.scores.get(fresh.bottleneck, 0.0), THRESHOLDS.name_score)
            assert best - fresh.scores[held] <= THRESHOLDS.held_margin + 1e-9
            assert beside.confidence_ratio <= 0.6, "it is told that another is as good"


def test_the_margin_has_something_to_decide() -> None:
    wide = Thresholds(held_margin=1.0)
    found = {case.name for case in CASES if (rival := named(case, None).runner_up) and
             named(case, rival, wide).bottleneck is rival}  # fmt: skip
    assert len(found) >= 3
