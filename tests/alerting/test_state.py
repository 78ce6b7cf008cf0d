"""Pending, firing, resolved: what Prometheus' rules do with the same results, and what gaps and clocks do to it."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pinchpoint.alerting import Alert, Severity
from pinchpoint.alerting.state import (
    MOST_INSTANCES,
    RESOLVED_RETENTION_SECONDS,
    UNSEEN_AFTER_SECONDS,
    Instance,
    Labels,
    State,
    States,
    Transition,
    moved,
    step,
)
from pinchpoint.alerting.state_text import ForeignStatesError, from_text, to_text

NOON = 1_750_000_000.0
STEP = 15.0
CHAT: Labels = frozenset({("engine", "chat")})
CODE: Labels = frozenset({("engine", "code")})
TRUE, NOT_TRUE = {CHAT: 0.95}, {}


def alert(name: str = "PinchpointKVCacheHigh", for_seconds: int = 60, keep: int = 0) -> Alert:
    words = {"expr": "x", "summary": "s", "description": "d"}
    return Alert(name=name, severity=Severity.CRITICAL, for_seconds=for_seconds, keep_firing_for_seconds=keep, **words)


class Run:
    """Evaluates one alert every 15 s and remembers what happened."""

    def __init__(self, alert: Alert) -> None:
        self.alert, self.states, self.now = alert, States(), NOON
        self.said: list[Transition] = []

    def go(self, *results: dict[Labels, float], blind: bool = False) -> "Run":
        for result in results:
            blindly = {self.alert.name} if blind else ()
            self.states, said = step(self.states, {self.alert: result}, self.now, blind=blindly)
            self.said += said
            self.now += STEP
        return self

    @property
    def instance(self) -> Instance | None:
        return self.states.instances.get(self.alert.name, {}).get(CHAT)

    @property
    def state(self) -> State | None:
        return self.instance.state if self.instance else None

    @property
    def changes(self) -> list[tuple[str | None, str | None]]:
        return [(each.before, each.after) for each in self.said]


def test_it_fires_once_it_has_held_for_as_long_as_the_alert_says_and_not_before() -> None:
    run = Run(alert(for_seconds=60)).go(*[TRUE] * 4)
    assert run.state is State.PENDING
    run.go(TRUE)
    assert run.instance == Instance(state=State.FIRING, value=0.95, active_at=NOON, fired_at=NOON + 60)
    assert run.changes == [(None, "pending"), ("pending", "firing")]


def test_a_pending_alert_that_is_not_true_once_begins_anew() -> None:
    run = Run(alert(for_seconds=60)).go(*[TRUE] * 4, NOT_TRUE)
    assert (run.state, run.changes[-1]) == (None, ("pending", None))
    assert run.go(*[TRUE] * 4).state is State.PENDING
    assert run.go(TRUE).state is State.FIRING


def test_without_a_wait_it_fires_at_once() -> None:
    run = Run(alert(for_seconds=0)).go(TRUE)
    assert (run.state, run.changes) == (State.FIRING, [(None, "firing")])


def test_the_value_is_that_of_the_last_evaluation() -> None:
    run = Run(alert(for_seconds=0)).go({CHAT: 0.91}, {CHAT: 0.99})
    assert run.instance is not None
    assert run.instance.value == 0.99
    assert run.go(NOT_TRUE).instance.value == 0.99  # type: ignore[union-attr]


def test_keep_firing_for_lets_it_end_only_when_it_was_over_for_so_long() -> None:
    run = Run(alert(for_seconds=0, keep=60)).go(TRUE, *[NOT_TRUE] * 4)
    assert run.state is State.FIRING
    run.go(TRUE, *[NOT_TRUE] * 4)  # it came back: the clock begins anew
    assert run.state is State.FIRING
    assert run.go(NOT_TRUE).state is State.RESOLVED
    assert run.changes == [(None, "firing"), ("firing", "resolved")]


def test_a_resolved_alert_is_kept_for_a_quarter_of_an_hour_so_that_its_end_is_heard() -> None:
    run = Run(alert(for_seconds=0)).go(TRUE, NOT_TRUE)
    ended = run.now - STEP
    while run.now - ended <= RESOLVED_RETENTION_SECONDS:
        assert run.go(NOT_TRUE).state is State.RESOLVED
    assert run.instance == Instance(
        state=State.RESOLVED, value=0.95, active_at=NOON, fired_at=NOON, resolved_at=NOON + STEP
    )
    assert run.go(NOT_TRUE).state is None
    assert run.changes == [(None, "firing"), ("firing", "resolved")]


def test_a_resolved_alert_that_is_true_again_is_a_new_one() -> None:
    run = Run(alert(for_seconds=30)).go(*[TRUE] * 3, NOT_TRUE, TRUE)
    assert run.instance == Instance(state=State.PENDING, value=0.95, active_at=NOON + 4 * STEP)
    assert run.go(TRUE, TRUE).instance.fired_at == NOON + 6 * STEP  # type: ignore[union-attr]


def test_each_set_of_labels_has_a_clock_of_its_own() -> None:
    run = Run(alert(for_seconds=30)).go({CHAT: 1.0}, {CHAT: 1.0, CODE: 2.0}, {CHAT: 1.0, CODE: 2.0})
    states = {labels: each.state for _, labels, each in run.states.each()}
    assert states == {CHAT: State.FIRING, CODE: State.PENDING}


def test_an_alert_whose_evaluation_failed_stays_as_it_was() -> None:
    run = Run(alert(for_seconds=0)).go(TRUE)
    states, said = step(run.states, {}, run.now)
    assert (states.instances, said) == (run.states.instances, ())


@pytest.mark.parametrize("seconds", [UNSEEN_AFTER_SECONDS + 1, 3600.0, 86_400.0])
def test_a_gap_is_no_time_in_which_it_held(seconds: float) -> None:
    run = Run(alert(for_seconds=60)).go(TRUE, TRUE)
    run.now += seconds
    assert run.go(TRUE, TRUE, TRUE).state is State.PENDING
    assert run.go(TRUE).state is State.FIRING


def test_a_gap_is_no_time_in_which_it_was_over_and_a_page_stays_one() -> None:
    run = Run(alert(for_seconds=0, keep=60)).go(TRUE, NOT_TRUE)
    run.now += 3600
    assert run.go(NOT_TRUE, TRUE).state is State.FIRING
    assert run.changes == [(None, "firing")]


@pytest.mark.parametrize("hour", [3600.0, -3600.0])
def test_a_clock_that_is_set_makes_no_alert_and_ends_none(hour: float) -> None:
    run = Run(alert(for_seconds=60, keep=60)).go(*[TRUE] * 3)
    run.now += hour
    assert run.go(TRUE).state is State.PENDING
    assert run.go(TRUE, TRUE).state is State.FIRING
    run.now += hour
    assert run.go(TRUE, NOT_TRUE, NOT_TRUE).state is State.FIRING
    run.now += hour
    assert run.go(*[NOT_TRUE] * 5).state is State.RESOLVED
    instance = run.instance
    assert instance is not None
    assert instance.fired_at is not None
    assert instance.resolved_at is not None
    assert instance.active_at <= instance.fired_at <= instance.resolved_at < run.now


def test_a_blind_evaluation_ends_nothing_and_lets_nothing_ripen() -> None:
    run = Run(alert(for_seconds=60, keep=30)).go(*[TRUE] * 4).go(*[NOT_TRUE] * 5, blind=True)
    assert run.state is State.PENDING
    assert run.go(TRUE, blind=True).state is State.FIRING
    assert run.go(*[NOT_TRUE] * 5, blind=True).state is State.FIRING
    assert run.go(NOT_TRUE, NOT_TRUE).state is State.FIRING
    assert run.go(NOT_TRUE).state is State.RESOLVED


def test_labels_that_change_all_the_time_are_bounded_and_those_refused_are_counted() -> None:
    run = Run(alert(for_seconds=0)).go({CHAT: 1.0})
    flood = {frozenset({("n", str(n))}): 1.0 for n in range(MOST_INSTANCES + 10)}
    run.go({CHAT: 1.0, **flood})
    assert (len(list(run.states.each())), run.states.refused) == (MOST_INSTANCES, 11)
    assert run.state is State.FIRING
    assert run.go({CHAT: 1.0}).states.refused == 0


# --- against a slow model, as Prometheus' source reads ---

results = st.dictionaries(st.sampled_from([CHAT, CODE]), st.floats(0, 1, width=32), max_size=2)


class LikePrometheus(RuleBasedStateMachine):
    """``AlertingRule.Eval``, transcribed: mutable, one clock that goes on evenly."""

    @initialize(for_steps=st.integers(0, 5), keep_steps=st.integers(0, 5))
    def begin(self, for_steps: int, keep_steps: int) -> None:
        self.alert = alert(for_seconds=int(for_steps * STEP), keep=int(keep_steps * STEP))
        self.states, self.now = States(), NOON
        self.active: dict[Labels, dict[str, object]] = {}

    @rule(result=results, times=st.integers(1, 70))
    def evaluate(self, result: dict[Labels, float], times: int) -> None:
        for _ in range(times):
            self.states, _ = step(self.states, {self.alert: result}, self.now)
            self._eval(result)
            self.now += STEP

    @rule(hours=st.sampled_from([-1, 1]))
    def set_the_clock(self, hours: int) -> None:
        """Whoever sets the clock and tells it sees no difference at all."""
        self.states = moved(self.states, hours * 3600)
        self.now += hours * 3600
        for each in self.active.values():
            for key, value in each.items():
                if key.endswith("_at") and value is not None:
                    each[key] = value + hours * 3600  # type: ignore[operator]

    @rule()
    def restart(self) -> None:
        self.states = from_text(to_text(self.states))

    def _eval(self, result: dict[Labels, float]) -> None:
        for labels, value in result.items():
            held = self.active.get(labels)
            if held is not None and held["state"] != "inactive":
                held["value"] = value
            else:
                self.active[labels] = {"state": "pending", "value": value, "active_at": self.now, "kept_at": None}
        for labels, each in list(self.active.items()):
            if labels not in result:
                keep = False
                if each["state"] == "firing" and self.alert.keep_firing_for_seconds:
                    each["kept_at"] = each["kept_at"] or self.now
                    keep = self.now - each["kept_at"] < self.alert.keep_firing_for_seconds  # type: ignore[operator]
                ended = each.get("resolved_at")
                if each["state"] == "pending" or (ended and self.now - ended > 900):  # type: ignore[operator]
                    del self.active[labels]
                if each["state"] != "inactive" and not keep:
                    each["state"], each["resolved_at"] = "inactive", self.now
                continue
            each["kept_at"] = None
            if each["state"] == "pending" and self.now - each["active_at"] >= self.alert.for_seconds:  # type: ignore[operator]
                each["state"], each["fired_at"] = "firing", self.now

    @invariant()
    def every_instance_is_as_prometheus_has_it(self) -> None:
        if not hasattr(self, "states"):
            return
        words = {"inactive": State.RESOLVED, "pending": State.PENDING, "firing": State.FIRING}
        theirs = {
            labels: (words[str(a["state"])], a["value"], a["active_at"], a.get("fired_at"), a.get("resolved_at"))
            for labels, a in self.active.items()
        }
        ours = {
            labels: (i.state, i.value, i.active_at, i.fired_at, i.resolved_at) for _, labels, i in self.states.each()
        }
        assert ours == theirs


TestLikePrometheus = LikePrometheus.TestCase
TestLikePrometheus.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)


# --- whatever the clock does ---


@given(st.lists(st.tuples(st.floats(-7200, 7200), results, st.booleans()), max_size=40))
@settings(max_examples=200, deadline=None)
def test_whatever_the_clock_does_times_stay_in_order_and_nothing_fires_that_was_not_seen(
    steps: list[tuple[float, dict[Labels, float], bool]],
) -> None:
    mine, states, now = alert(for_seconds=60, keep=60), States(), NOON
    for seconds, result, blind in steps:
        now += seconds
        before = {labels: each for _, labels, each in states.each()}
        states, said = step(states, {mine: result}, now, blind={mine.name} if blind else ())
        for _, _, each in states.each():
            times = [each.active_at, each.fired_at, each.resolved_at, now]
            known = [time for time in times if time is not None]
            assert all(a <= b + 1e-6 for a, b in pairwise(known))
            assert (each.fired_at is None) == (each.state is State.PENDING)
            assert (each.resolved_at is None) == (each.state is not State.RESOLVED)
        for each in said:
            if each.after is State.FIRING:  # never at the step that follows a leap, and never unseen
                assert each.labels in result
                assert each.labels in before
                assert 0 <= seconds <= UNSEEN_AFTER_SECONDS
            if each.after is State.RESOLVED or each.after is None:
                assert each.labels not in result
                assert not blind


# --- as text ---


def test_states_outlive_a_process_as_text() -> None:
    run = Run(alert(for_seconds=30, keep=60)).go({CHAT: math.nan, CODE: 0.5}, TRUE, TRUE, NOT_TRUE)
    assert from_text(to_text(run.states)) == run.states
    infinite = Run(alert(for_seconds=0)).go({CHAT: math.inf})
    assert math.isnan(from_text(to_text(infinite.states)).instances[infinite.alert.name][CHAT].value)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": "pinchpoint alerts 2", "at": null, "instances": []}'])
def test_a_foreign_text_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ForeignStatesError) as error:
        from_text(text)
    assert "\n" not in str(error.value)


def test_an_instance_without_the_times_of_its_state_is_left_out() -> None:
    run = Run(alert(for_seconds=0)).go(TRUE)
    broken = {run.alert.name: {CHAT: replace(run.instance, fired_at=None), CODE: run.instance}}  # type: ignore[type-var]
    back = from_text(to_text(replace(run.states, instances=broken)))  # type: ignore[arg-type]
    assert [labels for _, labels, _ in back.each()] == [CODE]
