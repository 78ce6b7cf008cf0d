"""Which alerts are pending, firing and resolved: a pure fold over evaluations, with Prometheus' semantics.

The source of ``for``, ``keep_firing_for`` and of how long an ended alert is kept is ``AlertingRule.Eval`` in
Prometheus' rules/alerting.go. Beyond it: time in which nobody looked (a gap, a restart, a clock that is set) counts
for nothing, since there is no database from which it could be looked up.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pinchpoint.alerting.alert import Alert
from pinchpoint.alerting.labels import Labels

RESOLVED_RETENTION_SECONDS = 900.0  # Prometheus' own: an Alertmanager that was away still hears of the end
UNSEEN_AFTER_SECONDS = 120.0  # eight evaluations, 15 s apart, that did not happen
SLACK_SECONDS = 0.5  # an evaluation that comes a little early must not make an alert wait for a whole one more
MOST_INSTANCES = 1000  # of one alert: a label that changes all the time costs no more than that

Result = Mapping[Labels, float]  # what an alert's expression yields: empty where all is well


class State(StrEnum):
    """Where an alert stands. One that is none of these is inactive, and not kept."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """An alert with one set of labels. Times are those that ``step`` was given, in seconds."""

    state: State
    value: float  # the last that the expression gave
    active_at: float  # since when it is true, less the time in which nobody looked
    fired_at: float | None = None
    keep_firing_since: float | None = None  # since when it is not true any more, while it is kept firing
    resolved_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Every instance by the alert's name and its labels, as of ``at``; ``None``: never evaluated."""

    at: float | None = None
    instances: Mapping[str, Mapping[Labels, Instance]] = field(default_factory=dict)
    refused: int = 0  # at the last step: they would have been more than ``MOST_INSTANCES``

    def each(self) -> Iterator[tuple[str, Labels, Instance]]:
        """All of them, one by one."""
        for name, instances in self.instances.items():
            for labels, instance in instances.items():
                yield name, labels, instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """That an instance went from one state to another; ``None`` is inactive."""

    alert: str
    labels: Labels
    at: float
    before: State | None
    after: State | None
    instance: Instance  # after it, or the last there was


def step(
    states: States,
    results: Mapping[Alert, Result],
    now: float,
    *,
    blind: Collection[str] = (),
    unseen_after_seconds: float = UNSEEN_AFTER_SECONDS,
) -> tuple[States, tuple[Transition, ...]]:
    """The states after an evaluation at ``now``, and what changed.

    An alert that is missing in ``results`` (its evaluation failed) stays as it was. Of those named in ``blind`` an
    empty result says nothing, for there is not enough data yet: what was active stays, and its clock stands still.
    Where the last step is longer ago than ``unseen_after_seconds``, nobody looked in between. Time that goes backwards
    takes everything with it.
    """
    elapsed = 0.0 if states.at is None else now - states.at
    if elapsed < 0:
        states, elapsed = moved(states, elapsed), 0.0
    elif elapsed > unseen_after_seconds:
        states, elapsed = _unseen(states, elapsed), 0.0
    instances, refused = dict(states.instances), 0
    transitions: list[Transition] = []
    for alert, result in results.items():
        held = states.instances.get(alert.name, {})
        after = dict(_true(alert, held, result, now))
        refused += len(result) - len(after)
        for labels, before in held.items():
            if labels not in after:
                kept = _stood_still(before, elapsed) if alert.name in blind else _not_true(alert, before, now)
                if kept is not None:
                    after[labels] = kept
        transitions += _changes(alert.name, held, after, now)
        instances[alert.name] = after
    left = {name: each for name, each in instances.items() if each}
    return States(at=now, instances=left, refused=refused), tuple(transitions)


def moved(states: States, seconds: float) -> States:
    """The same on a clock that is ahead by ``seconds``."""

    def ahead(time: float | None) -> float | None:
        return None if time is None else time + seconds

    def on_it(each: Instance) -> Instance:
        return replace(
            each,
            active_at=each.active_at + seconds,
            fired_at=ahead(each.fired_at),
            keep_firing_since=ahead(each.keep_firing_since),
            resolved_at=ahead(each.resolved_at),
        )

    return _mapped(replace(states, at=ahead(states.at)), on_it)


def _true(
    alert: Alert, held: Mapping[Labels, Instance], result: Result, now: float
) -> Iterable[tuple[Labels, Instance]]:
    room = MOST_INSTANCES - len(held)
    for labels, value in result.items():
        before = held.get(labels)
        if before is None:
            if room <= 0:
                continue
            room -= 1
        if before is None or before.state is State.RESOLVED:
            each = Instance(state=State.PENDING, value=value, active_at=now)
        else:
            each = replace(before, value=value, keep_firing_since=None)
        if each.state is State.PENDING and now - each.active_at >= alert.for_seconds - SLACK_SECONDS:
            each = replace(each, state=State.FIRING, fired_at=now)
        yield labels, each


def _not_true(alert: Alert, before: Instance, now: float) -> Instance | None:
    if before.state is State.PENDING:
        return None
    if before.state is State.RESOLVED:
        assert before.resolved_at is not None
        return before if now - before.resolved_at <= RESOLVED_RETENTION_SECONDS else None
    since = now if before.keep_firing_since is None else before.keep_firing_since
    if now - since < alert.keep_firing_for_seconds - SLACK_SECONDS:
        return replace(before, keep_firing_since=since)
    return replace(before, state=State.RESOLVED, resolved_at=now, keep_firing_since=None)


def _stood_still(each: Instance, seconds: float) -> Instance:
    """``each`` after ``seconds`` of which nothing is known."""
    if each.state is State.PENDING:
        return replace(each, active_at=each.active_at + seconds)
    if each.keep_firing_since is not None:
        return replace(each, keep_firing_since=each.keep_firing_since + seconds)
    return each


def _unseen(states: States, seconds: float) -> States:
    return _mapped(states, lambda each: _stood_still(each, seconds))


def _mapped(states: States, change: Callable[[Instance], Instance]) -> States:
    instances = {
        name: {labels: change(each) for labels, each in held.items()} for name, held in states.instances.items()
    }
    return replace(states, instances=instances)


def _changes(
    alert: str, before: Mapping[Labels, Instance], after: Mapping[Labels, Instance], now: float
) -> Iterator[Transition]:
    """What fires at once was not pending; what is forgotten long after its end has not changed."""
    for labels in {**before, **after}:
        was, is_now = before.get(labels), after.get(labels)
        old = was.state if was and was.state is not State.RESOLVED else None
        new = is_now.state if is_now else None
        if new is not old and not (new is State.RESOLVED and old is None):
            instance = is_now or was
            assert instance is not None
            yield Transition(alert=alert, labels=labels, at=now, before=old, after=new, instance=instance)
