"""The whole node in virtual time: engines, their cards, the host."""

from __future__ import annotations

from itertools import combinations
from random import Random

from pinchpoint.simulator.engine.loop import SimulatedEngine, Work
from pinchpoint.simulator.node.cards import SimulatedCard
from pinchpoint.simulator.scenarios import ENGINES, SCENARIOS
from pinchpoint.snapshot import GpuReading, HostReading, PeerLink

SAMPLE_SECONDS = 0.5  # how often cards and host are sampled
_CPU_COUNT = 64


class SimulatedMachine:
    """Engines on cards on a host. ``advance_to`` moves time; everything else looks.

    Changing the scenario keeps the engine processes, so their counters go on. An engine whose traffic is another in the
    new scenario loses its old clients, who hang up.
    """

    def __init__(self, seed: int = 0, scenario: str = "healthy") -> None:
        self._random = Random(f"{seed}/machine")  # noqa: S311 - a seeded model, no secret
        self.now = 0.0
        self.engines = {spec.name: SimulatedEngine(spec, seed) for spec in ENGINES}
        self.cards = {
            index: SimulatedCard(index, spec.gpu, spec.gpu.memory_bytes * spec.gpu_memory_utilization, self._random)
            for spec in ENGINES
            for index in spec.gpus
        }
        # An HGX board: every pair over NVSwitch.
        self.links = tuple(PeerLink(gpu, peer, "NV18", "ok") for gpu, peer in combinations(self.cards, 2))
        self._done = {name: Work() for name in self.engines}
        self.sampled_at = 0.0
        self.host = self._host_reading(0.0)
        self.use(scenario)

    def use(self, scenario: str) -> None:
        """Play another scenario from now on. Raises ``ValueError`` on an unknown name."""
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario {scenario!r}: choose one of {', '.join(SCENARIOS)}")
        self.scenario = SCENARIOS[scenario]
        for index, card in self.cards.items():
            card.fault = self.scenario.faults.get(index)
        for name, engine in self.engines.items():
            engine.use(self.scenario.workloads[name])
            # Ranks run in lock step, so the slowest card sets the pace.
            engine.clock_ratio = min(self.cards[index].clock_ratio for index in engine.spec.gpus)

    @property
    def next_event_at(self) -> float:
        """When something will happen by itself, a sample included."""
        return min(self.sampled_at + SAMPLE_SECONDS, *(engine.next_event_at for engine in self.engines.values()))

    def advance_to(self, until: float) -> None:
        """Play until ``until`` (seconds since the node began); time never goes back."""
        while self.sampled_at + SAMPLE_SECONDS <= until:
            self._run(self.sampled_at + SAMPLE_SECONDS)
            self._sample()
        self._run(until)

    def gpu_readings(self, at: float) -> tuple[GpuReading, ...]:
        return tuple(card.reading(at) for card in self.cards.values())

    def _run(self, until: float) -> None:
        for engine in self.engines.values():
            engine.run_until(until)
        self.now = max(self.now, until)

    def _sample(self) -> None:
        seconds = self.now - self.sampled_at
        host_cpu = 0.0
        for name, engine in self.engines.items():
            total = engine.work()
            done, self._done[name] = total.since(self._done[name]), total
            host_cpu += done.host_cpu_seconds
            for index in engine.spec.gpus:
                self.cards[index].advance(seconds, done)
        self.sampled_at = self.now
        self.host = self._host_reading(host_cpu / seconds)

    def _host_reading(self, step_cores: float) -> HostReading:
        # An engine core and each of its workers spin on a core of their own, whatever the load.
        spinning = sum(1 + engine.spec.tensor_parallel_size for engine in self.engines.values())
        cores = spinning + step_cores + self._random.uniform(0.0, 0.2)
        return HostReading(
            at=self.now,
            cpu_utilization_ratio=round((cores + self._random.uniform(0.5, 1.5)) / _CPU_COUNT, 3),
            cpu_count=float(_CPU_COUNT),
            cpu_throttled_ratio=0.0,
            cpu_pressure_ratio=round(self._random.uniform(0.0, 0.01), 3),
            engine_cpu_cores=round(cores, 2),
            memory_available_bytes=1.6e12,
        )
