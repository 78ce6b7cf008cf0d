"""What an alert would have done: its states folded over what its expression yielded at each evaluation of the past."""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.alerting.alert import Alert
from pinchpoint.alerting.labels import Labels
from pinchpoint.alerting.state import Result, State, States, step


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """One time that an alert would have fired, in Unix seconds. ``ended_at`` is ``None`` where it did until the end."""

    labels: Labels
    fired_at: float
    ended_at: float | None


class Backtest:
    """Folds one alert over evaluations in order of time. Where they come from does not matter.

    As in Prometheus an evaluation without a result ends what is pending, and after ``keep_firing_for`` what fires: a
    gap in the data too.
    """

    def __init__(self, alert: Alert) -> None:
        self.alert = alert
        self.ended: list[Firing] = []
        self._states = States()
        self._firing: dict[Labels, float] = {}

    def look(self, at: float, result: Result) -> None:
        """One evaluation."""
        if not result and not self._states.instances:
            return  # most of the time nothing is wrong
        self._states, transitions = step(self._states, {self.alert: result}, at, unseen_after_seconds=float("inf"))
        for each in transitions:
            if each.after is State.FIRING:
                self._firing[each.labels] = at
            elif each.before is State.FIRING:
                self.ended.append(Firing(labels=each.labels, fired_at=self._firing.pop(each.labels), ended_at=at))

    def firings(self) -> tuple[Firing, ...]:
        """Each time that it fired, in order, that which still goes on included."""
        going_on = [Firing(labels=labels, fired_at=at, ended_at=None) for labels, at in self._firing.items()]
        return tuple(sorted([*self.ended, *going_on], key=lambda firing: (firing.fired_at, sorted(firing.labels))))


def firing_seconds(firings: Sequence[Firing], end: float) -> float:
    """For how long any of them went on until ``end``: two at a time count once."""
    total, reached = 0.0, float("-inf")
    for firing in sorted(firings, key=lambda each: each.fired_at):
        ended = end if firing.ended_at is None else firing.ended_at
        total += max(0.0, ended - max(reached, firing.fired_at))
        reached = max(reached, ended)
    return total


def evaluation_times(start: float, end: float, interval: float) -> list[float]:
    """The multiples of ``interval`` from ``start`` to ``end``: only for such times do servers have caches."""
    first = -int(-start // interval)
    return [number * interval for number in range(first, int(end // interval) + 1)]
