"""What a Prometheus would have of a node, an hour in a minute: scenarios played in virtual time.

Everything between the simulated engines' expositions and ours is the daemon's own: board, diagnosis, hysteresis,
catalog, renderer. Not here: HTTP, NVML, the wall clock.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pinchpoint.alerting import KV_CACHE_HIGH_RATIO
from pinchpoint.config import Settings, load
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.deciding import Decider
from pinchpoint.outputs.exposition import Renderer
from pinchpoint.outputs.scene import Scene
from pinchpoint.simulator.node.machine import SimulatedMachine
from pinchpoint.simulator.serving.exposition import render
from pinchpoint.simulator.serving.paced import SimulatedGpus
from pinchpoint.simulator.world import LostCard, Probes, World
from pinchpoint.snapshot import (
    Absence,
    EngineReading,
    EngineTarget,
    GpuReading,
    JobReport,
    NvmlCall,
    NvmlCalls,
    Placement,
    ProbeReading,
    ProbeSkip,
    Reason,
    SelfReport,
)
from pinchpoint.sources.engine import EpochTracker, Recall, reading_from_body
from pinchpoint.sources.probe.spend.amount import NANO, Spent
from pinchpoint.sources.probe.spend.book import Left
from tests.e2e.sickness import LOST_GPU, SICK_NODE, SILENT_ENGINE, ailing, troubled

_PAYING = "rag-qwen2.5-14b"  # whose prober's hosted probes count
_HOSTED = "hosted-api"
_PROBE_SECONDS = 10.0
TICK_SECONDS = 5.0
_USD_PER_PROBE, _CAP_USD = 0.0004, 0.5
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A scenario and when it was on, in Unix seconds."""

    scenario: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """Samples at a Unix time: the series as PromQL writes it, and its value as text."""

    at: float
    samples: Sequence[tuple[str, str]]


class _Machine(SimulatedMachine):
    """The scenarios' services, which probe themselves."""

    def _world(self, service: str) -> World:
        return replace(super()._world(service), probes=Probes(every_seconds=_PROBE_SECONDS))


class _Gpus(SimulatedGpus):
    def calls(self, now: float) -> NvmlCalls:
        return NvmlCalls(
            calls=(NvmlCall(call="nvmlDeviceGetFieldValues", calls_total=int(now), seconds_total=now / 900),)
        )


class PlayedNode:
    """A node from ``begin`` (Unix time) on. ``scrapes`` moves time; ``chapters`` is what has been played."""

    def __init__(self, begin: float, *, seed: int = 0, job: str = "pinchpoint", instance: str = "gpu-node-1:10770"):
        self.begin, self.now, self.chapters = begin, 0.0, list[Chapter]()
        self._labels = f'job="{job}",instance="{instance}"'
        self._settings: Settings = load(
            flags={"engines": {"interval_seconds": 1}, "host": {"interval_seconds": 1}}, environment={}
        )
        self._machine = _Machine(seed)
        self._gpus = _Gpus(len(self._machine.gpu_readings(0.0)), self._machine.links)
        self._board = Board(self._settings, self._gpus)
        self._decider, self._renderer = Decider(self._settings), Renderer()
        self._engines = {
            name: EngineTarget(
                engine=name, url=f"http://{name}:8000", facts=s.facts(), gpus=tuple(s.cards), slo=s.world.slo
            )
            for name, s in self._machine.services.items()
        }
        self._memory = {name: (EpochTracker(), Recall()) for name in self._engines}
        self._told: dict[str, int] = dict.fromkeys(self._engines, 0)
        self._board.expect_engines(self._engines.values(), 0.0)
        self._board.expect_probes([(_HOSTED, Placement.HOSTED), *((name, Placement.LOCAL) for name in self._engines)])
        self._board.expect_spending(_HOSTED, priced=True)
        self._spent_usd, self._sick_since = 0.0, cast("float | None", None)

    def scrapes(self, scenario: str, seconds: float, every_seconds: float) -> Iterator[Scrape]:
        """Plays a scenario, as a scraping Prometheus sees it."""
        self._begin_chapter(scenario)
        began = self.now
        while self.now < began + seconds:
            self.now += TICK_SECONDS
            self._machine.advance_to(self.now)
            scene = self._tick()
            if self.now % every_seconds < TICK_SECONDS:
                body = self._renderer.render(scene)[1].plain.decode()
                samples = list(_samples(body, self._labels))
                yield Scrape(self.begin + self.now, [*samples, *_of_prometheus(scene, self._labels, len(samples))])
        self.chapters.append(Chapter(scenario=scenario, begin=self.begin + began, end=self.begin + self.now))

    def _begin_chapter(self, scenario: str) -> None:
        self._sick_since = self.now if scenario == SICK_NODE else None
        self._machine.use("healthy" if scenario == SICK_NODE else scenario)
        if scenario == SICK_NODE:
            service = next(s for s in self._machine.services.values() if LOST_GPU in s.cards)
            service.use(replace(service.world, faults=(LostCard(gpu=LOST_GPU, at=5.0),)))

    def _tick(self) -> Scene:
        now, board = self.now, self._board
        self._gpus.latest = self._gpu_readings()
        self._gpus.sampled_unix = self.begin + now
        board.put_host(replace(self._machine.host, at=now), 0.001)
        for name, target in self._engines.items():
            board.put_engine(name, self._engine(name, target), 0.004)
            for probe in self._new_probes(name):
                self._put_probe(name, probe)
        snapshot, sources = board.snapshot(now, self.begin)
        runs = int(now)
        report = SelfReport(
            version="0.0.0",
            python_version="3.11",
            simulated=True,
            started_timestamp_seconds=self.begin,
            event_loop_lag_seconds=0.002 + 0.001 * (runs % 7),
            render_seconds=0.006,
            sources=sources,
            jobs=tuple(JobReport(job=job, runs_total=runs, last_duration_seconds=0.004) for job in ("tick", "engines")),
            gpus_expected=self._gpus.gpus_expected,
            gpus_visible=self._gpus.gpus_visible,
            nvml=self._gpus.calls(now),
        )
        if self._sick_since is not None:
            report = troubled(report, now - self._sick_since)
            board.skip_probe(_HOSTED, ProbeSkip.BACKOFF)
        return self._decider.decide(snapshot, report, self.begin)

    def _gpu_readings(self) -> tuple[GpuReading, ...]:
        readings = self._machine.gpu_readings(self.now)
        if self._sick_since is None:
            return readings
        return tuple(ailing(reading, self.now - self._sick_since) for reading in readings)

    def _engine(self, name: str, target: EngineTarget) -> EngineReading | Absence:
        if self._sick_since is not None and name == SILENT_ENGINE:
            return Absence(f"engine/{name}", Reason.TIMEOUT, f"{name} did not answer", self.now)
        epochs, recall = self._memory[name]
        body = render(self._machine.services[name].engines, self.begin).encode()
        return epochs.stamp(reading_from_body(target, body, None, self.now, recall))

    def _new_probes(self, engine: str) -> Sequence[ProbeReading]:
        ended = self._machine.services[engine].probes()
        new = ended[self._told[engine] :]
        self._told[engine] = len(ended)
        return new

    def _put_probe(self, engine: str, probe: ProbeReading) -> None:
        """Every service's prober asks the same hosted API; one of them is enough."""
        if probe.placement is Placement.LOCAL:
            self._board.put_probe(replace(probe, target=engine, engine=engine), probe.duration_seconds or 0.0)
        elif engine == _PAYING:
            self._board.put_probe(replace(probe, target=_HOSTED), probe.duration_seconds or 0.0)
            self._spent_usd += _USD_PER_PROBE
            self._board.pay_for_probe(_HOSTED, Spent(tokens=72, nano_usd=round(_USD_PER_PROBE * NANO)))
            left = round((_CAP_USD - self._spent_usd) * NANO)
            self._board.put_budget(_HOSTED, Left(tokens={"day": 100_000}, nano_usd={"day": left}))


def _samples(body: str, labels: str) -> Iterator[tuple[str, str]]:
    for line in body.splitlines():
        if found := _SAMPLE.match(line):
            name, own, value = found.groups()
            yield f"{name}{{{labels}{',' + own[1:-1] if own else ''}}}", value


def _of_prometheus(scene: Scene, labels: str, samples: int) -> Iterator[tuple[str, str]]:
    """What a Prometheus adds: how its scrape went, and what its rules would raise if they waited for nothing."""
    yield f"up{{{labels}}}", "1"
    yield f"scrape_duration_seconds{{{labels}}}", f"0.00{4 + samples % 5}"
    yield f"scrape_samples_scraped{{{labels}}}", f"{samples}"
    yield 'ALERTS{alertname="PinchpointWatchdog",alertstate="firing",severity="none"}', "1"
    firing = f'{labels},alertstate="firing",severity="critical"'
    for engine in scene.snapshot.engines:
        for replica in engine.replicas:
            if (replica.kv_cache_usage_ratio or 0.0) > KV_CACHE_HIGH_RATIO:
                what = f'alertname="PinchpointKVCacheHigh",engine="{engine.engine}",replica="{replica.replica}"'
                yield f"ALERTS{{{what},{firing}}}", "1"
    for gpu in scene.snapshot.gpus:
        if not gpu.up:
            yield f'ALERTS{{alertname="PinchpointGPULost",gpu="{gpu.gpu}",uuid="{gpu.uuid}",{firing}}}', "1"
