"""Values made of files: made anew when a file changes, and kept while it can't be read."""

import asyncio
import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

RECHECK_SECONDS = 5.0  # a look costs a thread's turn; a rotated token or certificate overlaps its successor by minutes
PATIENCE_SECONDS = 1.0  # with a disk that hangs, while there is a value

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class _Entry(Generic[Value]):
    value: Value | None = None
    stamp: object = None  # of the files that the value was made of
    looked_at: float | None = None
    look: asyncio.Task[None] | None = None
    trouble: str = ""


class Kept(Generic[Key, Value]):
    """``make`` turns a key into its value, in a thread, and raises ``ValueError`` in words; ``paths`` are its files.

    A file that vanishes or turns bad leaves the last good value in force, as client-go does with its tokens: a file
    that is being replaced is away for a moment, and a value that no longer holds is refused by the server anyway.
    """

    def __init__(self, make: Callable[[Key], Value], paths: Callable[[Key], tuple[str, ...]]) -> None:
        self._make = make
        self._paths = paths
        self._entries: dict[Key, _Entry[Value]] = {}

    async def get(self, key: Key, now: float, *, at_once: bool = False) -> Value:
        """The value. Looks at its files first if the last look was five seconds ago, or ``at_once``.

        Raises ``ValueError`` where there has never been a value.
        """
        entry = self._entries.setdefault(key, _Entry())
        due = at_once or entry.looked_at is None or now - entry.looked_at >= RECHECK_SECONDS
        if due and (entry.look is None or entry.look.done()):  # a look that hangs holds one thread, not one per request
            entry.looked_at = now
            entry.look = asyncio.create_task(self._look(key, entry))
        if entry.look is not None:
            await asyncio.wait({entry.look}, timeout=None if entry.value is None else PATIENCE_SECONDS)
            if entry.look.done():
                entry.look.result()  # raises a defect
        if entry.value is None:
            raise ValueError(entry.trouble)
        return entry.value

    async def _look(self, key: Key, entry: _Entry[Value]) -> None:
        try:
            made = await asyncio.to_thread(self._made_anew, key, entry.stamp)
        except ValueError as error:
            if entry.value is not None and str(error) != entry.trouble:
                _log.warning("file can't be used, what it last held stays in force", cause=str(error))
            entry.trouble = str(error)
            return
        if made is not None:
            if entry.value is not None:
                _log.info("file has changed and is in force", files=self._paths(key))
            entry.stamp, entry.value = made
        elif entry.trouble:
            _log.info("file can be read again", files=self._paths(key))
        entry.trouble = ""

    def _made_anew(self, key: Key, known: object) -> tuple[object, Value] | None:
        """The files' stamp and the value, ``None`` where nothing has changed. In a thread."""
        stamp = tuple(map(_stamp, self._paths(key)))
        return None if stamp == known else (stamp, self._make(key))


def _stamp(path: str) -> tuple[int, ...]:
    """Changes when the file does: written, replaced, or a link on the way turned, as Kubernetes does."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
