"""Keeps one job per source in step with the settings, and puts what each job saw on the board.

The runner measures, the source works: duration and success are taken here, once, around every attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

import structlog

from pinchpoint.config import Settings
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.lag import LoopLag
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import EngineTarget, HostReading, ProbeOutcome
from pinchpoint.sources.discovery import find_engines
from pinchpoint.sources.engine import EngineScraper, EngineSourceSettings
from pinchpoint.sources.http import HttpClient
from pinchpoint.sources.pods import PodSource
from pinchpoint.sources.probe import Prober
from pinchpoint.sources.probe.settings import ProbeTargetSettings

log = structlog.get_logger(__name__)

# A found engine that stopped listening stays visible as down this long, so that it can be paged on.
FORGET_SECONDS = 600.0


@dataclass(slots=True)
class _Found:
    target: EngineTarget
    last_seen: float


class Observer:
    """The jobs of engines, probes, host, pods and discovery."""

    def __init__(
        self,
        scheduler: Scheduler,
        board: Board,
        read_host: Callable[[float], HostReading],
        lag: LoopLag,
        clock: Callable[[], float],
        own_ports: Callable[[], Collection[int]],
    ) -> None:
        self._scheduler = scheduler
        self._board = board
        self._read_host_now = read_host
        self._lag = lag
        self._clock = clock
        self._own_ports = own_ports
        self._client = HttpClient()
        self._named: tuple[EngineTarget, ...] = ()  # by the configuration
        self._scraped: dict[str, EngineTarget] = {}
        self._probers: dict[str, tuple[ProbeTargetSettings, Prober]] = {}
        self._pods: PodSource | None = None
        self._found: dict[str, _Found] = {}
        self._settings: Settings | None = None

    async def apply(self, settings: Settings, named: tuple[EngineTarget, ...]) -> None:
        """Starts, changes and ends jobs so that they match ``settings``, whose engines are ``named``.

        Readings of what stays are kept. Everything is changed before the first ``await``: no tick sees a half.
        """
        self._named = named
        before, self._settings = self._settings, settings
        self._follow_engines(settings, anew=before is not None and _pace(before) != _pace(settings))
        gone = self._follow_probes(settings)
        if settings.host.enabled:
            self._scheduler.every("host", settings.host.interval_seconds, self._read_host, first_run_at_once=True)
        else:
            self._scheduler.cancel("host")
        self._follow_pods(settings)
        if settings.discovery.looks_on_loopback(len(settings.engines.targets)):
            self._scheduler.every(
                "discovery", settings.discovery.interval_seconds, self._discover, first_run_at_once=True
            )
        else:
            self._scheduler.cancel("discovery")
            self._found.clear()
        for prober in gone:
            await prober.close()

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
        """Cancels probes under way: a generation may take a minute, and nobody waits for its result any more."""
        for name in self._probers:
            self._scheduler.cancel(f"probe/{name}")

    async def close(self) -> None:
        """Ends every connection. The jobs are the scheduler's to end, before."""
        for _, prober in self._probers.values():
            await prober.close()
        await self._client.close()

    def _follow_engines(self, settings: Settings, *, anew: bool) -> None:
        taken = {target.url for target in self._named}
        found = [f.target for f in self._found.values() if f.target.url not in taken]
        targets = {target.engine: target for target in (*found, *self._named)}
        for gone in self._scraped.keys() - targets.keys():
            self._scheduler.cancel(f"engine/{gone}")
            del self._scraped[gone]
        self._board.expect_engines(targets.values(), self._clock())
        for name, target in targets.items():
            if anew or self._scraped.get(name) != target:
                self._scraped[name] = target
                self._watch_engine(target, settings)

    def _watch_engine(self, target: EngineTarget, settings: Settings) -> None:
        scraper = EngineScraper(target, self._client, settings.engines)

        async def scrape() -> None:
            started = self._clock()
            if not scraper.is_due(started):
                return
            outcome = await scraper.scrape(self._clock)
            self._board.put_engine(target.engine, outcome, self._clock() - started)

        interval = settings.engines.interval_seconds
        self._scheduler.every(f"engine/{target.engine}", interval, scrape, first_run_at_once=True)

    def _follow_probes(self, settings: Settings) -> list[Prober]:
        """Returns the probers that are no longer wanted, for their connections to be closed."""
        gone: list[Prober] = []
        wanted = {target.name: target for target in settings.probes.targets}
        for name, (configured, prober) in tuple(self._probers.items()):
            if wanted.get(name) != configured:
                self._scheduler.cancel(f"probe/{name}")
                del self._probers[name]
                gone.append(prober)
        self._board.expect_probes((target.name, target.placement) for target in wanted.values())
        for name, target in wanted.items():
            if name not in self._probers:
                prober = Prober(target, self._clock, loop_lag=self._lag.since)
                self._probers[name] = (target, prober)
                self._scheduler.every(
                    f"probe/{name}",
                    target.interval_seconds,
                    partial(self._probe, prober),
                    first_run_at_once=True,
                    on_skip=partial(self._board.skip_probe, name, "overlap"),
                )
        return gone

    async def _probe(self, prober: Prober) -> None:
        started = self._clock()
        reading = await prober.probe()
        if reading.outcome is not ProbeOutcome.CANCELLED:
            self._board.put_probe(reading, self._clock() - started)

    async def _read_host(self) -> None:
        started = self._clock()
        reading = await asyncio.to_thread(self._read_host_now, started)
        self._board.put_host(reading, self._clock() - started)

    async def _read_pods(self, source: PodSource) -> None:
        started = self._clock()
        outcome = await source.read()
        self._board.put_pods(outcome, self._clock() - started)

    async def _discover(self) -> None:
        assert self._settings is not None
        found = await find_engines(self._client.session, own_ports=self._own_ports())
        now = self._clock()
        for target in found:
            known = self._found.get(target.engine)
            if known is None:
                log.info("engine found on loopback", engine=target.engine, url=target.url)
            self._found[target.engine] = _Found(known.target if known else target, now)
        for name in [name for name, f in self._found.items() if now - f.last_seen > FORGET_SECONDS]:
            log.info("engine forgotten", engine=name, not_seen_for_seconds=FORGET_SECONDS)
            del self._found[name]
        self._follow_engines(self._settings, anew=False)


def named_engines(settings: Settings) -> tuple[EngineTarget, ...]:
    """The engines that the configuration names."""
    return tuple(engine.target() for engine in settings.engines.targets)


def _pace(settings: Settings) -> EngineSourceSettings:
    """How engines are scraped, whichever they are: when it changes, every scraper is made anew."""
    return settings.engines.model_copy(update={"targets": ()})
