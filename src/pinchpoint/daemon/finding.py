"""Keeps the finders of engines in step with the settings, and what they found in one place."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

import structlog
from pydantic import ValidationError

from pinchpoint.config import Settings
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import EngineTarget, Reason
from pinchpoint.sources.discovery import (
    DiscoverySettings,
    Finder,
    Finding,
    Found,
    Ground,
    LoopbackFinder,
    Opening,
    Question,
    Watcher,
    openings,
)
from pinchpoint.sources.engine import PATHS, EngineSettings, kind_in, llamacpp
from pinchpoint.sources.http import SourceError

log = structlog.get_logger(__name__)

# What a port of this host is asked, whatever engine it may be.
QUESTIONS = tuple(Question(path, kind_in) for path in PATHS)
# What is asked first where such an engine is known to listen: a scrape would keep a llama-server awake.
AGAIN = {llamacpp.KIND.name: Question(llamacpp.PROPS_PATH, llamacpp.kind_in_props, holds_metrics=False)}

WATCH_AGAIN_SECONDS = 30.0  # after a defect


class Discoverer:
    """The jobs that look for engines. ``changed`` is called when what they found together is something else."""

    def __init__(
        self,
        scheduler: Scheduler,
        found: Found,
        ground: Ground,
        loopback: Callable[[float], LoopbackFinder],
        changed: Callable[[], None],
    ) -> None:
        self._scheduler, self._found, self._ground = scheduler, found, ground
        self._loopback, self._changed = loopback, changed
        self._open: dict[str, Opening] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}

    def follow(self, settings: Settings) -> None:
        """Opens, keeps and ends finders so that they match ``settings``. Does not call ``changed``."""
        wanted = openings(settings.discovery, self._ground)
        if settings.discovery.looks_on_loopback(len(settings.engines.targets)):
            seconds = settings.discovery.interval_seconds
            alone = DiscoverySettings(interval_seconds=seconds)  # the lists' settings are not its own
            wanted[LoopbackFinder.name] = Opening(alone, partial(self._loopback, seconds))
        for name in [name for name, opening in self._open.items() if not _same(opening, wanted.get(name))]:
            del self._open[name]
            self._end(name)
        self._found.keep(wanted)
        for name, opening in wanted.items():
            if name not in self._open:
                self._open[name] = opening
                self._begin(name, opening.open())

    def end(self) -> None:
        """Ends what tells by itself. The jobs are the scheduler's to end."""
        for task in self._watching.values():
            task.cancel()

    def _begin(self, name: str, finder: Finder | Watcher) -> None:
        if isinstance(finder, Watcher):
            self._watching[name] = asyncio.create_task(self._watch(finder), name=f"discovery/{name}")
        else:
            ask = partial(self._ask, finder)
            self._scheduler.every(f"discovery/{name}", finder.interval_seconds, ask, first_run_at_once=True)

    def _end(self, name: str) -> None:
        self._scheduler.cancel(f"discovery/{name}")
        if task := self._watching.pop(name, None):
            task.cancel()

    async def _ask(self, finder: Finder) -> None:
        started = self._ground.now()
        try:
            said: Finding | SourceError = await finder.find()
        except SourceError as error:
            said = error
        except Exception as error:
            self._said(finder.name, _defect(error), started)
            raise  # the scheduler counts it, and logs it once
        self._said(finder.name, said, started)

    async def _watch(self, watcher: Watcher) -> None:
        while True:
            try:
                await watcher.watch(partial(self._said, watcher.name))
            except Exception as error:  # the guard of this runner: a defect costs one finder, not the daemon
                log.exception("discovery failed by a defect", discovery=watcher.name)
                self._said(watcher.name, _defect(error))
            await asyncio.sleep(WATCH_AGAIN_SECONDS)

    def _said(self, name: str, said: Finding | SourceError, started: float | None = None) -> None:
        now = self._ground.now()
        duration = None if started is None else now - started
        if isinstance(said, SourceError):
            self._found.fail(name, said, now, duration)
        elif self._found.put(name, said, now, duration):
            self._changed()


def engine_described(description: Mapping[str, object]) -> EngineTarget:
    """The engine of a description, checked like one of the configuration. Raises ``ValueError``: what; what to do."""
    try:
        return EngineSettings.model_validate(description).target()
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise ValueError(f"{key}: {first['msg'].removeprefix('Value error, ')}") from None


def _defect(error: Exception) -> SourceError:
    return SourceError(Reason.ERROR, f"a defect of pinchpoint ({type(error).__name__}); see its log")


def _same(opening: Opening, wanted: Opening | None) -> bool:
    return wanted is not None and opening.settings == wanted.settings
