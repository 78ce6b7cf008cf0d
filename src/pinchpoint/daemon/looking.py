"""Looks at the processes of engines on this host: now and then, and at once when an engine has begun anew.

A look reads /proc in a thread and may hang with a process that hangs: then no other begins, what was found last holds,
and everything else goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from pinchpoint.config import Settings
from pinchpoint.daemon.board import Board
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import Absence, Reason
from pinchpoint.sources.process import Looked, ProcessFinder

log = structlog.get_logger(__name__)

JOB = "process"


class ProcessLook:
    """One look in flight at most; what it finds goes on the board."""

    def __init__(
        self, scheduler: Scheduler, board: Board, clock: Callable[[], float], finder: ProcessFinder | None = None
    ) -> None:
        self._scheduler, self._board, self._clock = scheduler, board, clock
        self._finder = finder or ProcessFinder()
        self._enabled, self._deadline_seconds = False, 0.0
        self._look: asyncio.Task[None] | None = None
        self._again = False

    def follow(self, settings: Settings) -> None:
        """Looks, or no longer looks, as ``settings`` say."""
        self._enabled, self._deadline_seconds = settings.processes.enabled, settings.processes.deadline_seconds
        if self._enabled:
            self._scheduler.every(JOB, settings.processes.interval_seconds, self._periodic, first_run_at_once=True)
        else:
            self._scheduler.cancel(JOB)
            self._board.put_processes(None, self._clock())

    def soon(self) -> None:
        """Looks now; if a look is under way, once more after it, since it may have come too early."""
        if not self._enabled:
            return
        if self._look and not self._look.done():
            self._again = True
        else:
            self._look = asyncio.get_running_loop().create_task(self._looks(), name="process look")

    def end(self) -> None:
        if self._look:
            self._look.cancel()

    async def _periodic(self) -> None:
        self.soon()

    async def _looks(self) -> None:
        await self._one()
        while self._again:
            self._again = False
            await self._one()

    async def _one(self) -> None:
        started = self._clock()
        looking = asyncio.ensure_future(asyncio.to_thread(self._finder.look, self._board.targets))
        done, _ = await asyncio.wait({looking}, timeout=self._deadline_seconds)
        if not done:
            detail = "a look at the engines' processes has not returned; one may hang in its driver (ps shows state D)"
            log.warning("looking at processes hangs, what was found last holds", seconds=self._deadline_seconds)
            self._board.put_processes(Absence(JOB, Reason.HUNG, detail, started), started)
        found: Looked | Absence
        try:
            found = await looking
        except Exception as error:  # the guard of this source: a defect costs one look
            log.exception("look at processes failed by a defect")
            found = Absence(JOB, Reason.ERROR, f"a defect of pinchpoint ({type(error).__name__}); see its log", started)
        if not done:
            log.info("looking at processes goes on")
        if self._enabled:
            self._board.put_processes(found, started, self._clock() - started)
