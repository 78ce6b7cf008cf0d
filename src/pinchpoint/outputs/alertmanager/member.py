"""One member of the cluster: what it was told, what it has to hear, and how often it is asked while it is away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

import structlog

from pinchpoint.outputs.alertmanager.notice import Notice, Notices, body
from pinchpoint.outputs.alertmanager.settings import AlertmanagerSettings, AlertmanagerTarget
from pinchpoint.snapshot import AlertmanagerReport, Reason
from pinchpoint.sources.http import HttpClient, SourceError
from pinchpoint.sources.http.backoff import Backoff

MOST_IN_ONE = 256  # as Prometheus 3 sends at once
MOST_ANSWER_BYTES = 4096

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Told:
    """What was last told of an alert, and when, on the private clock."""

    at: float
    starts_at: float
    resolved: bool


class Member:
    """Tells one Alertmanager, one request at a time. There is no queue: what it has not heard is what is so now."""

    def __init__(
        self,
        target: AlertmanagerTarget,
        settings: AlertmanagerSettings,
        client: HttpClient,
        clock: Callable[[], float],
        unix_time: Callable[[], float],
    ) -> None:
        self.target = target
        self._client = client
        self._clock, self._unix_time = clock, unix_time
        self._resend_seconds = settings.resend_seconds - settings.evaluation_interval_seconds / 2  # the nearest one
        self._backoff = Backoff(settings.evaluation_interval_seconds)
        self._told: dict[Hashable, _Told] = {}
        self._waiting = 0
        self._up: bool | None = None
        self._posts = 0
        self._failures: Counter[Reason] = Counter()
        self._succeeded_unix: float | None = None

    def report(self) -> AlertmanagerReport:
        return AlertmanagerReport(
            alertmanager=self.target.url,
            up=self._up,
            notifications_total=self._posts,
            notifications_failed_total=dict(self._failures),
            last_success_timestamp_seconds=self._succeeded_unix,
            queue_length=self._waiting,
        )

    async def tell(self, notices: Notices) -> None:
        """Posts what it has not heard yet, and what it must hear again. Raises nothing but cancellation."""
        now = self._clock()
        self._told = {each.key: told for each in notices.every if (told := self._told.get(each.key)) is not None}
        due = [each for each in notices.every if self._is_due(each, now)]
        self._waiting = len(due)
        if not self._backoff.is_due(now):
            return
        failure: SourceError | None = None
        for some in _in_batches(due):
            try:
                await self._post(notices, some)
            except SourceError as error:
                failure = error
                self._failures[error.reason] += 1
                if error.reason is not Reason.REFUSED:
                    self._backoff.failed(now)
                    break
            else:
                self._backoff.succeeded()
                self._succeeded_unix = self._unix_time()
            # What was refused, in part at least, would be refused again: its turn comes with the next resend.
            self._told |= {each.key: _Told(now, each.starts_at, each.resolved_at is not None) for each in some}
            self._waiting -= len(some)
        if due:
            self._say(failure, len(due))

    def _is_due(self, each: Notice, now: float) -> bool:
        told = self._told.get(each.key)
        if told is None or told.resolved != (each.resolved_at is not None) or told.starts_at != each.starts_at:
            return True
        return now - told.at >= self._resend_seconds

    async def _post(self, notices: Notices, some: Sequence[Notice]) -> None:
        self._posts += 1
        try:
            answer = await self._client.post(
                self.target.alerts_url,
                body(notices, some),
                timeout_seconds=self.target.timeout_seconds,
                max_body_bytes=MOST_ANSWER_BYTES,
                now=self._clock,
                access=self.target.access(),
            )
        except SourceError:
            raise
        except Exception as error:  # the guard of this output: a defect costs one post, not the others
            if self._failures[Reason.ERROR] == 0:
                log.exception("telling an Alertmanager failed by a defect", alertmanager=self.target.url)
            detail = f"a defect of pinchpoint ({type(error).__name__}); see its log"
            raise SourceError(Reason.ERROR, detail) from None
        _require_ok(answer.status)

    def _say(self, failure: SourceError | None, alerts: int) -> None:
        """One line when it does not take alerts any more, one when it does again."""
        if failure is not None and self._up is not False:
            log.warning(
                "Alertmanager is not told of alerts",
                alertmanager=self.target.url,
                alerts=alerts,
                reason=str(failure.reason),
                cause=failure.detail,
            )
        elif failure is None and self._up is False:
            log.info("Alertmanager is told of alerts again", alertmanager=self.target.url, alerts=alerts)
        self._up = failure is None


def _in_batches(notices: Sequence[Notice]) -> Iterator[Sequence[Notice]]:
    for first in range(0, len(notices), MOST_IN_ONE):
        yield notices[first : first + MOST_IN_ONE]


def _require_ok(status: int) -> None:
    if 200 <= status < 300:
        return
    if status in (401, 403):
        raise SourceError(
            Reason.UNAUTHORIZED, f"HTTP {status}: check bearer_token_file, basic_auth or headers, and what they may do"
        )
    if status in (400, 413, 422):
        raise SourceError(Reason.REFUSED, f"HTTP {status}: it does not take what it was told; see its log")
    remedy = "check url and its path prefix" if status < 500 else "see its log"
    raise SourceError(Reason.HTTP_STATUS, f"HTTP {status}; {remedy}")
