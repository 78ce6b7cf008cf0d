"""Takes the configuration anew: all of it or nothing, one at a time, and never more than one waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from pinchpoint.config import ConfigError, Settings

log = structlog.get_logger(__name__)


class Reloader:
    """``load`` may fail, and changes nothing; ``take`` can't, and changes everything."""

    def __init__(self, load: Callable[[], Settings], take: Callable[[Settings], Awaitable[None]]) -> None:
        self._load = load
        self._take = take
        self._one_at_a_time = asyncio.Lock()
        self._waiting: asyncio.Task[str | None] | None = None
        self._unfinished: set[asyncio.Task[str | None]] = set()  # the loop holds its tasks weakly
        self.successful = True
        self.succeeded_unix = time.time()

    async def begin(self, settings: Settings) -> None:
        """Takes the first configuration; a reload meanwhile waits."""
        async with self._one_at_a_time:
            await self._take(settings)

    async def reload(self) -> str | None:
        """The mistakes of the new configuration, ``None`` when all is well.

        Calls that come while one waits for its turn share it: it will read what is there when its turn comes.
        """
        return await asyncio.shield(self.ask())

    def ask(self) -> asyncio.Task[str | None]:
        """The same, without waiting for it."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().create_task(self._take_turn(), name="reload")
            self._unfinished.add(self._waiting)
            self._waiting.add_done_callback(self._unfinished.discard)
        return self._waiting

    async def _take_turn(self) -> str | None:
        async with self._one_at_a_time:
            self._waiting = None
            try:
                settings = await asyncio.to_thread(self._load)
            except ConfigError as error:
                self.successful = False
                for problem in error.problems:
                    log.error("configuration not reloaded, the old one stays", problem=str(problem))
                return str(error)
            await self._take(settings)
            self.successful, self.succeeded_unix = True, time.time()
            log.info("configuration reloaded")
            return None
