"""The deadlines of one attempt: a single timer that moves with the stage, so that the stage names the reason."""

import asyncio
from enum import StrEnum
from math import inf
from types import TracebackType
from typing import Self

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.settings import DeadlineSettings

SLACK = 0.02
DRAIN_SECONDS = 1.0  # after the answer is complete: time for usage and the end of the body, so the connection is reused


class Stage(StrEnum):
    CONNECT = "connect"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a stage, not a secret
    IDLE = "idle"
    DRAIN = "drain"


_OUTCOME = {
    Stage.CONNECT: ProbeOutcome.CONNECT_TIMEOUT,
    Stage.FIRST_TOKEN: ProbeOutcome.FIRST_TOKEN_TIMEOUT,
    Stage.IDLE: ProbeOutcome.STALLED,
}


class Watch:
    """``async with Watch(deadlines) as watch``: raises ``TimeoutError`` at its end when a deadline passed inside.

    ``enter`` starts a stage, or starts it anew: the idle stage is entered at each event that brings the answer on,
    and never at a keepalive. A stage that is started anew may end early by ``SLACK`` of its time: to move the timer at
    every one of thousands of events would take time from those that are measured.
    """

    def __init__(self, deadlines: DeadlineSettings) -> None:
        self._seconds = {
            Stage.CONNECT: deadlines.connect,
            Stage.FIRST_TOKEN: deadlines.first_token,
            Stage.IDLE: deadlines.idle,
            Stage.DRAIN: DRAIN_SECONDS,
        }
        self._overall_seconds = deadlines.overall
        self._overall_first = False
        self._timer = asyncio.timeout(None)
        self._end = 0.0
        self._due = -inf
        self.stage = Stage.CONNECT

    async def __aenter__(self) -> Self:
        await self._timer.__aenter__()
        self._end = asyncio.get_running_loop().time() + self._overall_seconds
        self.enter(Stage.CONNECT)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._timer.__aexit__(kind, error, traceback)

    def enter(self, stage: Stage) -> None:
        """Begin a stage now. The overall deadline stays where it is."""
        if self._timer.expired():
            return
        due = asyncio.get_running_loop().time() + self._seconds[stage]
        if stage is self.stage and due - self._due < SLACK * self._seconds[stage]:
            return
        self.stage, self._due = stage, due
        self._overall_first = self._end < due
        self._timer.reschedule(min(due, self._end))

    @property
    def expired(self) -> bool:
        return self._timer.expired()

    @property
    def overdue(self) -> str:
        """The deadline in words: its name, as in the settings, and its seconds."""
        name, seconds = (
            ("overall", self._overall_seconds) if self._overall_first else (self.stage, self._seconds[self.stage])
        )
        return f"{name} {seconds:g} s"

    def outcome(self) -> ProbeOutcome | None:
        """What the deadline that passed stands for; ``None`` when only the drain was cut short, which is no failure."""
        if self.stage is Stage.DRAIN:
            return None
        return ProbeOutcome.OVERALL_TIMEOUT if self._overall_first else _OUTCOME[self.stage]
