"""The alerts, evaluated over what the last ticks saw. In a thread: some milliseconds of work, four times a minute."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from pinchpoint.alerting import Alert
from pinchpoint.alerting.promql import CompiledExpr, PromqlError, compile_expr, needs_of
from pinchpoint.alerting.series import Series
from pinchpoint.alerting.state import UNSEEN_AFTER_SECONDS, Result, States, Transition, moved, step
from pinchpoint.outputs.exposition import samples_of
from pinchpoint.outputs.scene import Scene

CLOCK_SET_SECONDS = 1.0  # less is a clock that is being slewed
OUTAGE_TOLERANCE_SECONDS = 3600.0  # as Prometheus' --rules.alert.for-outage-tolerance: what is older is over
WARM_UP_SECONDS = 60.0  # until engines are found and read once more
LONGEST_WARM_UP_SECONDS = 1800.0  # a page that is over must not hang for hours because its rule looks back so far

LOOKBACK_SECONDS = 300.0
MOST_SERIES = 50_000  # 500 engines have 20,000; each costs a kilobyte, and more where an alert looks back for hours

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One evaluation of all alerts, at ``at`` (Unix seconds)."""

    at: float
    states: States
    transitions: tuple[Transition, ...]
    failures: Mapping[str, str]  # by the alert's name, one line each
    refused_series: int  # that no longer fit into memory
    seconds: float


class Evaluator:
    """Remembers samples and states. Used by one thread at a time.

    Alerts that only somebody outside can see are left out. Raises ``PromqlError`` for an expression that can't be
    evaluated here.
    """

    def __init__(self, alerts: Iterable[Alert], target_labels: Mapping[str, str]) -> None:
        seen = [alert for alert in alerts if not alert.needs_outside_view]
        self.alerts: Mapping[str, Alert] = {alert.name: alert for alert in seen}
        self._compiled = {alert: compile_expr(alert.expr) for alert in seen}
        self._series = Series(needs_of(self._compiled.values()), target_labels=target_labels, max_series=MOST_SERIES)
        self._states = States()
        self._offset: float | None = None
        self._blind_until: dict[str, float] = {}  # by the alert's name
        self._failing: frozenset[str] = frozenset()
        self._is_full = False

    @property
    def names(self) -> frozenset[str]:
        """The series that it looks at."""
        return self._series.names

    def recall(self, states: States, unix_seconds: float) -> None:
        """Goes on with what an earlier process knew, if that is not too long ago. Before the first evaluation.

        What fired then fires until there is data enough to say that it is over: its page must not end and begin anew
        because of a restart.
        """
        if states.at is None or unix_seconds - states.at > OUTAGE_TOLERANCE_SECONDS:
            return
        known = {name: held for name, held in states.instances.items() if name in self.alerts}
        self._states = States(at=states.at, instances=known)
        for name in known:
            warm_up = _warm_up_seconds(self._compiled[self.alerts[name]])
            self._blind_until[name] = unix_seconds + warm_up

    def evaluate(self, scene: Scene, at: float, interval_seconds: float) -> Evaluation:
        """Looks at ``scene`` as of ``at``, on the clock of readings. ``interval_seconds``: how often that is done."""
        started = time.perf_counter()
        now = self._unix(at, scene.unix_offset_seconds)
        self._series.append(now, samples_of(scene, self.names))
        results: dict[Alert, Result] = {}
        failures: dict[str, str] = {}
        for alert, compiled in self._compiled.items():
            try:
                results[alert] = compiled.evaluate(self._series, now)
            except PromqlError as error:
                failures[alert.name] = str(error)
            except Exception as error:  # noqa: BLE001 - the guard of this loop: a defect in one alert costs no other
                failures[alert.name] = f"a defect of pinchpoint ({type(error).__name__}: {error})"
        self._states, transitions = step(
            self._states,
            results,
            now,
            blind={name for name, until in self._blind_until.items() if now < until},
            unseen_after_seconds=max(UNSEEN_AFTER_SECONDS, 4 * interval_seconds),
        )
        self._say(failures)
        self._say_refused()
        seconds = time.perf_counter() - started
        return Evaluation(
            at=now,
            states=self._states,
            transitions=transitions,
            failures=failures,
            refused_series=self._series.refused_series,
            seconds=seconds,
        )

    def _unix(self, at: float, offset: float) -> float:
        """``at`` in Unix time. Where the system's clock was set, all that is remembered goes over to the new one."""
        if self._offset is None:
            self._offset = offset
        if abs(leap := offset - self._offset) >= CLOCK_SET_SECONDS:
            log.info("the clock was set, and what alerts remember with it", seconds=round(leap, 3))
            self._offset = offset
            self._series.move(leap)
            self._states = moved(self._states, leap)
            self._blind_until = {name: until + leap for name, until in self._blind_until.items()}
        return at + self._offset

    def _say(self, failures: Mapping[str, str]) -> None:
        """One line for each alert that can't be evaluated, one when it can be again."""
        for name in sorted(failures.keys() - self._failing):
            log.error("alert can't be evaluated and stays as it is", alert=name, cause=failures[name])
        for name in sorted(self._failing - failures.keys()):
            log.info("alert is evaluated again", alert=name)
        self._failing = frozenset(failures)

    def _say_refused(self) -> None:
        """One line when there is more than is remembered, one when there is not any more."""
        series, alerts = self._series.refused_series, self._states.refused
        if bool(series or alerts) != self._is_full:
            self._is_full = not self._is_full
            if self._is_full:
                log.warning(
                    "there is more than alerts remember",
                    refused_series=series,
                    refused_alerts=alerts,
                    remedy="watch fewer engines here (shards), or let a Prometheus evaluate the rules",
                )
            else:
                log.info("alerts remember everything again")


def _warm_up_seconds(compiled: CompiledExpr) -> float:
    """Of an expression that looks back no further than Prometheus does for any sample, a minute tells enough."""
    looks_back = max(compiled.needs.values(), default=0.0)
    beyond = looks_back if looks_back > LOOKBACK_SECONDS else 0.0
    return WARM_UP_SECONDS + min(beyond, LONGEST_WARM_UP_SECONDS)
