"""Keeps what must outlive a restart, verdicts and alerts: read once at the start, written now and then and at the end.

In a thread of its own, under deadlines: a disk that fails, fills or hangs costs the memory and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog

from pinchpoint.daemon.remembered import MOST_BYTES, WRITE_SECONDS, Remembered, from_text, to_text
from pinchpoint.daemon.state_file import StateFile, TakenError

READ_SECONDS = 1.0  # the first tick waits for it
LAST_WRITE_SECONDS = 0.3  # the end of the process waits for it

log = structlog.get_logger(__name__)
T = TypeVar("T")
Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[Kept]):
    """Something that is kept. ``read`` gets the text and the Unix time, and raises ``ValueError`` with one line for
    what is not ours; ``write`` is told whether the process ends by itself, and gives ``None`` where a file is not worth
    it."""

    what: str  # in the log
    file: str
    nothing: Kept
    read: Callable[[bytes, float], Kept]
    write: Callable[[Kept, bool], str | None]


def _verdicts_text(every: Mapping[str, Remembered], ended: bool) -> str | None:
    return to_text(every, ended=ended) if every else None  # an engine too few is no reason for a file


VERDICTS: Kind[Mapping[str, Remembered]] = Kind(
    what="verdicts", file="verdicts.json", nothing={}, read=from_text, write=_verdicts_text
)


class Keeper(Generic[Kept]):
    """Remembers in ``folder``; ``None`` remembers nothing. Raises nothing but cancellation."""

    def __init__(self, folder: Path | None, kind: Kind[Kept], wall: Callable[[], float] = time.time) -> None:
        self._kind = kind
        self._file = None if folder is None else StateFile(folder, kind.file)
        self._wall = wall
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=kind.what)
        self._late: Future[Any] | None = None  # a call that outlasted its deadline
        self._failing = False

    async def recall(self) -> Kept:
        """What an earlier process remembered, in Unix time; nothing where there is nothing to trust."""
        found = await self._in_thread(self._read, READ_SECONDS)
        return self._kind.nothing if found is None else found

    async def keep(self, what: Callable[[], Kept], *, ended: bool = False) -> None:
        """Writes what ``what`` returns, which is called in the thread."""
        deadline = LAST_WRITE_SECONDS if ended else WRITE_SECONDS
        await self._in_thread(lambda file: self._write(file, what, ended), deadline)

    def close(self) -> None:
        """Lets another process have the memory. Does not wait for a disk that hangs."""
        self._thread.shutdown(wait=False)
        if self._file is not None:
            self._file.close()

    def _read(self, file: StateFile) -> Kept:
        text = file.read(MOST_BYTES)  # one that is cut off is damaged
        if text is None:
            return self._kind.nothing
        try:
            return self._kind.read(text, self._wall())
        except ValueError as error:
            event = f"the remembered {self._kind.what} are not ours or damaged, so all begin anew"
            log.warning(
                event,
                file=str(file.path),
                set_aside=str(file.set_aside()),
                cause=str(error),
            )
            return self._kind.nothing

    def _write(self, file: StateFile, what: Callable[[], Kept], ended: bool) -> None:
        if (text := self._kind.write(what(), ended)) is not None:
            file.write(text)

    async def _in_thread(self, call: Callable[[StateFile], T], deadline: float) -> T | None:
        if self._file is None:
            return None
        try:
            result = await self._in_time(self._file, call, deadline)
        except OSError as error:
            self._fail(error)
            return None
        if self._failing:
            event = f"{self._kind.what} are remembered again"
            log.info(event, file=str(self._file.path))
        self._failing = False
        return result

    async def _in_time(self, file: StateFile, call: Callable[[StateFile], T], deadline: float) -> T:
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
            event = f"{self._kind.what} will not outlive a restart"
            log.warning(event, file=str(self._file.path), cause=cause, **remedy)
        self._failing = True
