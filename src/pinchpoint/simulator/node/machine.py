"""A whole node in virtual time: services side by side on one host, one scenario after the other."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from pinchpoint.simulator.node.service import SAMPLE_SECONDS, Service
from pinchpoint.simulator.scenarios import SCENARIOS, world_of
from pinchpoint.simulator.world import World
from pinchpoint.snapshot import GpuReading, HostReading, PeerLink


class SimulatedMachine:
    """``services`` by name. ``advance_to`` moves time; everything else looks.

    Changing the scenario keeps the engine processes, so their counters go on. A service whose traffic is another in the
    new scenario loses its old clients, who hang up.
    """

    def __init__(self, seed: int = 0, scenario: str = "healthy") -> None:
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario {scenario!r}: choose one of {', '.join(SCENARIOS)}")
        self._seed, self.scenario = seed, SCENARIOS[scenario]
        self.now = 0.0
        self.services = {name: Service(self._world(name)) for name in self.scenario.worlds}

    def use(self, scenario: str) -> None:
        """Play another scenario from now on. Raises ``ValueError`` on an unknown name."""
        if scenario not in SCENARIOS:
            raise ValueError(f"no scenario {scenario!r}: choose one of {', '.join(SCENARIOS)}")
        self.scenario = SCENARIOS[scenario]
        for name, service in self.services.items():
            service.use(self._world(name))

    @property
    def links(self) -> tuple[PeerLink, ...]:
        """Within each service; between services nobody asks."""
        return tuple(chain.from_iterable(service.links for service in self.services.values()))

    @property
    def sampled_at(self) -> float:
        return min(service.sampled_at for service in self.services.values())

    @property
    def next_event_at(self) -> float:
        """When something will happen by itself, a sample included."""
        return min(service.next_event_at for service in self.services.values())

    def advance_to(self, until: float) -> None:
        """Play until ``until`` (seconds since the node began); time never goes back."""
        while self.sampled_at + SAMPLE_SECONDS <= until:
            self._advance(self.sampled_at + SAMPLE_SECONDS)
            for service in self.services.values():
                service.forget()
        self._advance(until)

    def gpu_readings(self, at: float) -> tuple[GpuReading, ...]:
        return tuple(chain.from_iterable(service.gpu_readings(at) for service in self.services.values()))

    @property
    def host(self) -> HostReading:
        """The CPUs that all services share; of what each tells of its container, the worst."""
        readings = [service.host for service in self.services.values()]
        cpus = max(reading.cpu_count or 0.0 for reading in readings)
        cores = sum(reading.engine_cpu_cores or 0.0 for reading in readings)
        throttled = [ratio for reading in readings if (ratio := reading.cpu_throttled_ratio) is not None]
        return replace(
            readings[0],
            at=self.now,
            cpu_count=cpus,
            cpu_utilization_ratio=round(min(1.0, (cores + 1.0) / cpus), 3),
            cpu_throttled_ratio=max(throttled, default=None),
            cpu_pressure_ratio=max(reading.cpu_pressure_ratio or 0.0 for reading in readings),
            engine_cpu_cores=round(cores, 2),
        )

    def _world(self, service: str) -> World:
        """Each draws from a seed of its own: two services of one node are no twins."""
        name = self.scenario.name
        return world_of(name, self._seed + list(self.scenario.worlds).index(service), service)

    def _advance(self, until: float) -> None:
        for service in self.services.values():
            service.advance_to(until)
        self.now = max(self.now, until)
