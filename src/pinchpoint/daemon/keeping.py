"""Keeps verdicts over a restart: read once before the first tick, written now and then and at the end.

In a thread of its own, under deadlines: a disk that fails, fills or hangs costs the memory and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import structlog

from pinchpoint.daemon.remembered import MOST_BYTES, WRITE_SECONDS, ForeignError, Remembered, from_text, to_text
from pinchpoint.daemon.verdict_file import TakenError, VerdictFile

READ_SECONDS = 1.0  # the first tick waits for it
LAST_WRITE_SECONDS = 0.3  # the end of the process waits for it

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Keeper:
    """Remembers in ``folder``; ``None`` remembers nothing. Raises nothing but cancellation."""

    def __init__(self, folder: Path | None, wall: Callable[[], float] = time.time) -> None:
        self._file = None if folder is None else VerdictFile(folder)
        self._wall = wall
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="verdicts")
        self._late: Future[Any] | None = None  # a call that outlasted its deadline
        self._failing = False

    async def recall(self) -> Mapping[str, Remembered]:
        """What an earlier process remembered, in Unix time; nothing where there is nothing to trust."""
        found = await self._in_thread(self._read, READ_SECONDS)
        return found or {}

    async def keep(self, every: Callable[[], Mapping[str, Remembered]], *, ended: bool = False) -> None:
        """Writes what ``every`` returns, which is called in the thread. An engine too few is no reason for a file."""
        await self._in_thread(
            lambda file: self._write(file, every, ended), LAST_WRITE_SECONDS if ended else WRITE_SECONDS
        )

    def close(self) -> None:
        """Lets another process have the memory. Does not wait for a disk that hangs."""
        self._thread.shutdown(wait=False)
        if self._file is not None:
            self._file.close()

    def _read(self, file: VerdictFile) -> Mapping[str, Remembered]:
        text = file.read(MOST_BYTES)  # one that is cut off is damaged
        if text is None:
            return {}
        try:
            return from_text(text, self._wall())
        except ForeignError as error:
            log.warning(
                "the remembered verdicts are not ours or damaged, so all begin anew",
                file=str(file.path),
                set_aside=str(file.set_aside()),
                cause=str(error),
            )
            return {}

    @staticmethod
    def _write(file: VerdictFile, every: Callable[[], Mapping[str, Remembered]], ended: bool) -> None:
        if remembered := every():
            file.write(to_text(remembered, ended=ended))

    async def _in_thread(self, call: Callable[[VerdictFile], T], deadline: float) -> T | None:
        if self._file is None:
            return None
        try:
            result = await self._in_time(self._file, call, deadline)
        except OSError as error:
            self._fail(error)
            return None
        if self._failing:
            log.info("verdicts are remembered again", file=str(self._file.path))
        self._failing = False
        return result

    async def _in_time(self, file: VerdictFile, call: Callable[[VerdictFile], T], deadline: float) -> T:
        if self._late is not None and not self._late.done():
            raise TimeoutError("the disk hangs")
        running = self._thread.submit(call, file)
        try:
            async with asyncio.timeout(deadline):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            if running.running():
                self._late = running
            raise TimeoutError(f"the disk has not answered for {deadline:g} s") from None

    def _fail(self, error: OSError) -> None:
        """One line until it is well again: nobody depends on it."""
        if not self._failing and self._file is not None:
            remedy = {"remedy": "set state_directory to a folder of its own"} if isinstance(error, TakenError) else {}
            cause = error.strerror or str(error)
            log.warning("verdicts will not outlive a restart", file=str(self._file.path), cause=cause, **remedy)
        self._failing = True
