"""What finds engines: asked again and again, or telling by itself. Each hands on whole lists."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.http.failure import SourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Every engine that one finder knows of now: a whole list, never a change of one.

    ``refused`` are the items that were left out, a line each: which, why, what to do. ``failure`` is set when a part
    could not be read anew, so that ``targets`` holds that part as it was.
    """

    targets: tuple[EngineTarget, ...] = ()
    refused: tuple[str, ...] = ()
    failure: SourceError | None = None


class Finder(Protocol):
    """Is asked. ``name`` (``file/fleet``) is a label value, and what names the finder in every message."""

    @property
    def name(self) -> str: ...

    @property
    def interval_seconds(self) -> float:
        """How often to ask."""
        ...

    async def find(self) -> Finding:
        """Looks now, in bounded time, and never blocks the loop. Raises ``SourceError``: then the last list holds."""
        ...


Say = Callable[[Finding | SourceError], None]


@runtime_checkable
class Watcher(Protocol):
    """Tells by itself. ``name`` as a finder's."""

    @property
    def name(self) -> str: ...

    async def watch(self, say: Say) -> None:
        """Says the whole list whenever it has changed or was confirmed, and each failure, until it is cancelled.

        After a failure it goes on by itself, and the last list holds meanwhile.
        """
        ...
