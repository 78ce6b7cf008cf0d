"""A node that is not there: simulated engines behind real HTTP, paced by the wall clock, on simulated cards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import structlog

from pinchpoint.simulator.node.machine import SimulatedMachine
from pinchpoint.simulator.scenarios import SCENARIOS
from pinchpoint.simulator.serving.server import EngineServer
from pinchpoint.snapshot import Absence, EngineTarget, GpuReading, HostReading, NvmlCalls, PeerLink, SourceReport

log = structlog.get_logger(__name__)

_SHORTEST_NAP_SECONDS = 0.001
_LONGEST_NAP_SECONDS = 0.02  # a request from outside waits at most this long for an idle engine
_WARMUP_SECONDS = 20.0  # played before the first scrape: the engines have been up for a while
_LARGEST_LEAP_SECONDS = 5.0  # after a suspended laptop: skip the rest rather than play it


class SimulatedGpus:
    """What the NVML source offers, of cards that are not there. Reads frozen values; any thread may ask."""

    outdated = False

    def __init__(self, count: int, links: tuple[PeerLink, ...]) -> None:
        self.gpus_expected = self.gpus_visible = count
        self.links = links
        self.latest: tuple[GpuReading, ...] = ()
        self.sampled_unix: float | None = None

    def start(self) -> None:
        """Nothing to do: the node samples its cards."""

    def stop(self) -> None:
        """Nothing to do."""

    def readings(self, now: float) -> tuple[tuple[GpuReading, ...], tuple[Absence, ...]]:  # noqa: ARG002 - NVML's surface
        return self.latest, ()

    def report(self, now: float) -> SourceReport:  # noqa: ARG002 - NVML's surface
        sampled = self.sampled_unix
        return SourceReport(
            source="gpu", up=bool(self.latest), duration_seconds=0.0, last_success_timestamp_seconds=sampled
        )

    def calls(self, now: float) -> NvmlCalls:  # noqa: ARG002 - NVML's surface
        return NvmlCalls()


class SimulatedNode:
    """The services of the scenarios, in real time.

    ``scenario`` names one of ``SCENARIOS``; ``None`` lets them take turns, ``scenario_seconds`` each. ``speed`` is
    simulated seconds per second. ``clock`` is the monotonic clock that readings carry in ``at``: the caller's. Raises
    ``ValueError`` on an unknown scenario.
    """

    def __init__(
        self,
        seed: int = 0,
        scenario: str | None = None,
        scenario_seconds: float = 60.0,
        speed: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turns = tuple(SCENARIOS) if scenario is None else (scenario,)
        self._scenario_seconds, self._speed, self._clock = scenario_seconds, speed, clock
        self._machine = SimulatedMachine(seed, self._turns[0])
        self._sampled_at = -1.0
        self._machine.advance_to(_WARMUP_SECONDS)
        self._origin = clock()  # of simulated second _WARMUP_SECONDS
        self._servers: list[EngineServer] = []
        self._targets: tuple[EngineTarget, ...] = ()
        self._pacer: asyncio.Task[None] | None = None
        self.gpus = SimulatedGpus(len(self._machine.gpu_readings(0.0)), self._machine.links)
        self._host = replace(self._machine.host, at=self._origin)

    @property
    def scenario(self) -> str:
        """The scenario that is being played."""
        return self._machine.scenario.name

    def targets(self) -> tuple[EngineTarget, ...]:
        """Where the engines answer. Empty before ``start``."""
        return self._targets

    def host(self, now: float, engines: object = None) -> HostReading:  # noqa: ARG002 - the host source's surface
        return self._host

    async def start(self) -> None:
        """Open the HTTP servers and let time run. Ends what it began when one of them can't start."""
        self._origin = self._clock()
        unix_epoch = time.time() - _WARMUP_SECONDS
        try:
            for name, service in self._machine.services.items():
                server = EngineServer(service, self._advance, unix_epoch=unix_epoch)
                self._servers.append(server)
                url, gpus = await server.start(), tuple(service.cards)
                slo = service.world.slo
                self._targets += (EngineTarget(engine=name, url=url, facts=service.facts(), gpus=gpus, slo=slo),)
        except BaseException:
            await self.stop()
            raise
        self._advance()
        self._pacer = asyncio.create_task(self._pace(), name="simulator pacer")

    async def stop(self) -> None:
        if self._pacer is not None:
            self._pacer.cancel()
            await asyncio.wait([self._pacer])
        await asyncio.gather(*(server.stop() for server in self._servers))
        self._servers.clear()

    async def wait(self) -> None:
        """Return when the pacer has ended, which it does only when it is stopped or has a defect (raised here)."""
        if self._pacer is not None:
            await asyncio.wait([self._pacer])
            if not self._pacer.cancelled():
                self._pacer.result()

    async def _pace(self) -> None:
        while True:
            self._advance()
            nap = (self._machine.next_event_at - self._machine.now) / self._speed
            await asyncio.sleep(min(max(nap, _SHORTEST_NAP_SECONDS), _LONGEST_NAP_SECONDS))

    def _advance(self) -> None:
        """Play up to the present, change scenarios on the way, and publish samples."""
        until = _WARMUP_SECONDS + (self._clock() - self._origin) * self._speed
        leap = until - self._machine.now - _LARGEST_LEAP_SECONDS * max(1.0, self._speed)
        if leap > 0:
            self._origin += leap / self._speed
            until -= leap
        turn = self._turns[int((until - _WARMUP_SECONDS) / self._scenario_seconds) % len(self._turns)]
        if turn != self.scenario:
            log.info("the simulated scenario changes", scenario=turn)
            self._machine.use(turn)
        self._machine.advance_to(until)
        if self._machine.sampled_at != self._sampled_at:
            self._sampled_at = self._machine.sampled_at
            at = self._clock()
            self._host = replace(self._machine.host, at=at)
            self.gpus.latest = self._machine.gpu_readings(at)
            self.gpus.sampled_unix = time.time()
