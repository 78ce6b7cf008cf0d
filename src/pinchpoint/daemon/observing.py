"""Keeps one job per source in step with the settings, and puts what each job saw on the board.

The runner measures, the source works: duration and success are taken here, once, around every attempt.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import structlog

from pinchpoint.config import Settings
from pinchpoint.daemon.announcing import announce_engines
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.finding import AGAIN, QUESTIONS, Discoverer, engine_described
from pinchpoint.daemon.looking import ProcessLook
from pinchpoint.daemon.node import ReadHost
from pinchpoint.daemon.probing import Probing
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.discovery import Ground, LoopbackFinder
from pinchpoint.sources.engine import EngineScraper, EngineSourceSettings
from pinchpoint.sources.http import HttpClient
from pinchpoint.sources.pods import PodSource

log = structlog.get_logger(__name__)

# More that are new at once are a fleet: its scrapes begin spread over the interval instead of all together.
AT_ONCE = 16

# Scrapes at one time of engines that did not answer last time. Hundreds on a host that is gone would each hold a
# connection until its deadline, and those that are well would wait for one. One that finds no place comes again.
UNANSWERED_AT_ONCE = 64


class Observer:
    """The jobs of engines, host, pods and discovery, and, by ``Probing``, those of probes."""

    def __init__(
        self,
        scheduler: Scheduler,
        board: Board,
        read_host: ReadHost,
        clock: Callable[[], float],
        own_ports: Callable[[], Collection[int]],
    ) -> None:
        self._scheduler = scheduler
        self._board = board
        self._read_host_now = read_host
        self._probing = Probing(scheduler, board, clock)
        self._clock = clock
        self._own_ports = own_ports
        self._client = HttpClient()
        self._named: tuple[EngineTarget, ...] = ()  # by the configuration
        self._scrapers: dict[str, EngineScraper] = {}
        self._unanswered = asyncio.Semaphore(UNANSWERED_AT_ONCE)
        self._pods: PodSource | None = None
        self._discoverer = self._new_discoverer()
        self._look = ProcessLook(scheduler, board, clock)
        self._settings: Settings | None = None

    async def apply(self, settings: Settings) -> None:
        """Starts, changes and ends jobs so that they match ``settings``.

        Readings of what stays are kept. Everything is changed before the first ``await``: no tick sees a half.
        """
        self._named = tuple(engine.target() for engine in settings.engines.targets)
        before, self._settings = self._settings, settings
        self._discoverer.follow(settings)
        self._follow_engines(settings, anew=before is not None and _pace(before) != _pace(settings))
        gone = self._probing.follow(settings)
        if settings.host.enabled:
            self._scheduler.every("host", settings.host.interval_seconds, self._read_host, first_run_at_once=True)
        else:
            self._scheduler.cancel("host")
        self._follow_pods(settings)
        self._look.follow(settings)
        for prober in gone:
            await prober.close()

    def _new_discoverer(self) -> Discoverer:
        def loopback(interval_seconds: float) -> LoopbackFinder:
            return LoopbackFinder(
                self._client, interval_seconds, self._clock, own_ports=self._own_ports, questions=QUESTIONS, again=AGAIN
            )

        def changed() -> None:
            assert self._settings is not None
            self._follow_engines(self._settings, anew=False)

        ground = Ground(client=self._client, build=engine_described, now=self._clock)
        return Discoverer(self._scheduler, self._board.found, ground, loopback, changed)

    def _follow_pods(self, settings: Settings) -> None:
        if not settings.pods.enabled:
            self._scheduler.cancel("pods")
            self._pods = None
            self._board.put_pods(None)
        elif self._pods is None or self._pods.settings != settings.pods:
            self._pods = PodSource(settings.pods, self._clock)
            run = partial(self._read_pods, self._pods)
            self._scheduler.every("pods", settings.pods.interval_seconds, run, first_run_at_once=True)

    def abandon_probes(self) -> None:
        """Cancels probes under way: nobody waits for their results any more."""
        self._probing.abandon()

    async def close(self) -> None:
        """Ends every connection. The jobs are the scheduler's to end, before."""
        self._discoverer.end()
        self._look.end()
        await self._probing.close()
        await self._client.close()

    def _follow_engines(self, settings: Settings, *, anew: bool) -> None:
        """Matches scrapes with the engines there are. What is said of an engine may change without a new beginning."""
        found = self._board.found.merged(self._named, settings.discovery.part, unshared=(LoopbackFinder.name,))
        targets = {target.engine: target for target in found}
        announce_engines(self._scrapers.keys(), targets.keys())
        for gone in self._scrapers.keys() - targets.keys():
            self._scheduler.cancel(f"engine/{gone}")
            del self._scrapers[gone]
        self._board.expect_engines(targets.values(), self._clock())
        new = [t for t in found if anew or not _is_there(self._scrapers.get(t.engine), t)]
        for name, scraper in self._scrapers.items():
            scraper.target = targets[name]
        for target in new:
            self._watch_engine(target, settings, at_once=len(new) <= AT_ONCE)

    def _watch_engine(self, target: EngineTarget, settings: Settings, *, at_once: bool) -> None:
        self._scrapers[target.engine] = scraper = EngineScraper(target, self._client, settings.engines)

        async def scrape() -> None:
            started = self._clock()
            if not scraper.is_due(started) or (not scraper.is_answered and self._unanswered.locked()):
                return
            async with nullcontext() if scraper.is_answered else self._unanswered:
                outcome = await scraper.scrape(self._clock)
            if self._board.put_engine(target.engine, outcome, self._clock() - started):
                self._look.soon()

        interval = settings.engines.interval_seconds
        offset = zlib.crc32(target.engine.encode()) / 2**32 * interval  # each its own part of the interval, always
        self._scheduler.every(
            f"engine/{target.engine}", interval, scrape, offset_seconds=offset, first_run_at_once=at_once
        )

    async def _read_host(self) -> None:
        started = self._clock()
        reading = await asyncio.to_thread(self._read_host_now, started, self._board.engine_processes)
        self._board.put_host(reading, self._clock() - started)

    async def _read_pods(self, source: PodSource) -> None:
        started = self._clock()
        outcome = await source.read()
        self._board.put_pods(outcome, self._clock() - started)


def _is_there(scraper: EngineScraper | None, target: EngineTarget) -> bool:
    """Whether ``target`` is what is scraped already, though other things may be said of it now."""
    if scraper is None or scraper.target.facts.kind != target.facts.kind:
        return False
    said = {name: getattr(target, name) for name in ("facts", "slo", "gpus", "found_by", "labels")}
    return replace(scraper.target, **said) == target


def _pace(settings: Settings) -> EngineSourceSettings:
    """How engines are scraped, whichever they are: when it changes, every scraper is made anew."""
    return settings.engines.model_copy(update={"targets": ()})
