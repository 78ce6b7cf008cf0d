"""The one door to the ledger: asks it in a thread of its own, under a deadline.

A disk may fail, fill or hang. Then nothing is granted: what can't be written down is not spent.
"""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import structlog

from pinchpoint.snapshot import ProbeSkip
from pinchpoint.sources.probe.spend import book
from pinchpoint.sources.probe.spend.amount import Tokens
from pinchpoint.sources.probe.spend.book import Ask, Book, Left, Refusal, Reservation
from pinchpoint.sources.probe.spend.book_file import BookFile, LedgerError
from pinchpoint.sources.probe.spend.days import Days

DEADLINE_SECONDS = 5.0  # a busy disk writes a small file well within it

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Purse:
    """Grants and settles for every target, from the ledger in ``folder``; ``None`` grants nothing.

    ``wall`` is Unix time, ``monotonic`` tells when the wall clock was set. Nothing here raises but cancellation.
    """

    def __init__(
        self,
        folder: Path | None,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder = folder
        self._file = None if folder is None else BookFile(folder)
        self._wall, self._monotonic = wall, monotonic
        self._days = Days()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spend")
        self._late: Future[Any] | None = None  # a call that outlasted its deadline
        self._failing = False

    async def reserve(self, ask: Ask) -> tuple[Reservation | Refusal, Left | None]:
        """The worst that a probe can cost, set aside; or why not. And what is left then, if the ledger could say."""

        def step(before: Book, unix: float) -> tuple[Book, tuple[Reservation | Refusal, Left]]:
            answer = book.reserve(before, ask, unix)
            after, granted = (before, answer) if isinstance(answer, Refusal) else answer
            return after, (granted, book.left(after, ask, unix))

        try:
            return await self._change(step)
        except LedgerError as error:
            return Refusal(cause=ProbeSkip.LEDGER, detail=str(error)), None

    async def settle(self, granted: Reservation, bill: Tokens, ask: Ask) -> Left | None:
        """Puts the bill in place of the reserve. Where the ledger fails, the reserve stays spent."""

        def step(before: Book, unix: float) -> tuple[Book, Left]:
            after = book.settle(before, granted, bill, ask.price)
            return after, book.left(after, ask, unix)

        try:
            return await self._change(step)
        except LedgerError:
            return None

    def close(self) -> None:
        """Takes no further call. Does not wait for a disk that hangs."""
        self._thread.shutdown(wait=False)

    async def _change(self, step: Callable[[Book, float], tuple[Book, T]]) -> T:
        try:
            result = await self._in_thread(step)
        except LedgerError as error:
            if not self._failing:
                log.error("the spend ledger can't be used, so hosted probes stop", cause=str(error))
            self._failing = True
            raise
        if self._failing:
            log.info("the spend ledger can be used again")
        self._failing = False
        return result

    async def _in_thread(self, step: Callable[[Book, float], tuple[Book, T]]) -> T:
        if self._file is None:
            raise LedgerError("there is no folder for it; set state_directory")
        if self._late is not None and not self._late.done():
            raise LedgerError(f"{self._file.path}: the disk hangs")
        unix = self._days.unix(self._wall(), self._monotonic())
        call = self._thread.submit(self._file.change, lambda before: step(before, unix), unix)
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                return await asyncio.wrap_future(call)
        except TimeoutError:
            if call.running():  # one that still waited behind another is cancelled, and tells nothing
                self._late = call
            raise LedgerError(f"{self._file.path}: the disk has not answered for {DEADLINE_SECONDS:g} s") from None
