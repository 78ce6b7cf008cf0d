"""Alerts without a Prometheus: evaluated at a pace of their own, remembered over a restart, told to Alertmanager."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.state import State, States, Transition
from pinchpoint.alerting.state_text import from_text, to_text
from pinchpoint.config import Settings
from pinchpoint.daemon.evaluating import Evaluation, Evaluator
from pinchpoint.daemon.keeping import Keeper, Kind
from pinchpoint.daemon.wording import Wording
from pinchpoint.outputs.alertmanager import AlertmanagerSettings, Delivery, Notice, Notices
from pinchpoint.outputs.published import Published
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import AlertingReport, AlertReport

JOB = "alerts"  # of the scheduler
LAST_POSTS_SECONDS = 0.5  # the end of the process waits for them
VALID_RESENDS = 4  # as Prometheus: an alert outlives three resends that did not arrive

KEPT: Kind[States] = Kind(
    what="alerts",
    file="alerts.json",
    nothing=States(),
    read=lambda text, _: from_text(text),
    write=lambda states, _: to_text(states) if states.at is not None else None,
)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What an evaluation says, in words."""

    evaluation: Evaluation
    notices: list[Notice]
    reports: tuple[AlertReport, ...]


class Alarm:
    """The job of the alerts; there is none unless the settings name an Alertmanager."""

    def __init__(
        self,
        scheduler: Scheduler,
        published: Callable[[], Published | None],
        folder: Path | None,
        port: Callable[[], int | None],
        clock: Callable[[], float],
        unix_time: Callable[[], float] = time.time,
    ) -> None:
        self._scheduler, self._published, self._port = scheduler, published, port
        self._clock, self._unix_time = clock, unix_time
        self._keeper = Keeper(folder, KEPT)
        self._delivery = Delivery(clock, unix_time)
        self._settings = AlertmanagerSettings()
        self._evaluator: Evaluator | None = None
        self._wording: Wording | None = None
        self._last: _Outcome | None = None
        self._failures = 0
        self._is_closed = False

    async def follow(self, settings: Settings) -> None:
        """Starts, changes or ends what there is of it. What is remembered of alerts outlives a change."""
        before, self._settings = self._settings, settings.alertmanager
        self._delivery.follow(self._settings)
        if not self._settings.enabled:
            self._scheduler.cancel(JOB)
            self._evaluator, self._wording, self._last = None, None, None
            return
        await self._begin(anew=before.instance != self._settings.instance)
        if JOB not in self._scheduler.jobs() or before.pace != self._settings.pace:
            self._scheduler.every(JOB, self._settings.evaluation_interval_seconds, self.evaluate)

    async def evaluate(self) -> None:
        """Evaluates what was published last and lets everybody know. What is to be remembered is written down before
        anybody is told: a page of which a process that is killed then knows nothing would be paged again."""
        published, evaluator, wording = self._published(), self._evaluator, self._wording
        if published is None or evaluator is None or wording is None:
            return
        interval = self._settings.evaluation_interval_seconds

        def outcome() -> _Outcome:
            evaluation = evaluator.evaluate(published.scene, self._clock(), interval)
            states = evaluation.states
            return _Outcome(evaluation=evaluation, notices=wording.notices(states), reports=wording.reports(states))

        self._last = last = await asyncio.to_thread(outcome)
        evaluation = last.evaluation
        self._failures += len(evaluation.failures)
        _say(evaluation.transitions)
        if evaluation.transitions:
            await self.remember()
        if not self._is_closed and evaluator is self._evaluator:
            self._delivery.tell(
                Notices(
                    at=evaluation.at,
                    every=last.notices,
                    valid_seconds=VALID_RESENDS * max(self._settings.resend_seconds, interval),
                    generator_url=self._page,
                )
            )

    async def remember(self, *, ended: bool = False) -> None:
        """Writes down the states, in a thread."""
        if (last := self._last) is not None:
            await self._keeper.keep(lambda: last.evaluation.states, ended=ended)

    def report(self) -> AlertingReport | None:
        """How it stands; ``None`` where alerts are not evaluated here."""
        if not self._settings.enabled:
            return None
        last = self._last
        evaluation = last.evaluation if last else None
        return AlertingReport(
            active=last.reports if last else (),
            alertmanagers=self._delivery.reports(),
            evaluation_seconds=evaluation.seconds if evaluation else None,
            evaluation_failures_total=self._failures,
            last_evaluation_timestamp_seconds=evaluation.at if evaluation else None,
            refused=evaluation.refused_series + evaluation.states.refused if evaluation else None,
        )

    async def close(self) -> None:
        """Remembers, and lets what is under way arrive.

        Ends no alert: what fires goes on firing, a restart must not page anew, and an upgrade must not tell everybody
        that all is well. If there is no restart, Alertmanager resolves them by itself, four resends later.
        """
        self._is_closed = True
        await asyncio.gather(self.remember(ended=True), self._delivery.close(LAST_POSTS_SECONDS))
        self._keeper.close()

    async def _begin(self, *, anew: bool) -> None:
        settings = self._settings
        host = socket.gethostname()
        target = {"job": "pinchpoint", "instance": settings.instance or f"{host}:{self._port() or 0}"}
        if self._evaluator is None or anew:
            remembered = self._last.evaluation.states if self._last else await self._keeper.recall()
            self._evaluator = Evaluator(ALERTS, target)
            self._evaluator.recall(remembered, self._unix_time())
        self._wording = Wording(
            alerts=self._evaluator.alerts,
            labels={**settings.labels, **target},
            grafana_url=settings.grafana_url or "",
            runbook_url=settings.runbook_url,
        )
        self._page = f"{settings.external_url or f'http://{host}:{self._port() or 0}'}/"


def _say(transitions: Iterable[Transition]) -> None:
    """A line for each alert that begins or ceases to fire, of however many things at once."""
    changes = [each for each in transitions if State.FIRING in (each.before, each.after)]
    count = Counter((each.alert, each.after) for each in changes)
    first = {(each.alert, each.after): each for each in reversed(changes)}
    for (name, after), number in count.items():
        event = "alert fires" if after is State.FIRING else "alert has ended"
        more = {"of": number} if number > 1 else {}
        log.info(event, alert=name, labels=dict(sorted(first[name, after].labels)), **more)
