"""The host (or container) that the engines run on."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineHost:
    """CPU of one engine's own processes, and of the cgroup that they are in, over the last interval."""

    cpu_cores: float | None = None  # used
    cpu_limit_cores: float | None = None  # may be used: the least of quota and allowed CPUs
    cpu_throttled_ratio: float | None = None  # share of periods in which a quota was used up, the worst cgroup above it
    cpu_pressure_ratio: float | None = None  # share of time in which one of its tasks waited for a CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """CPU of the host over the last interval. Field names are the keys of a recording's ``host.jsonl``.

    ``engines``, by name, are those whose processes are seen. Where any is, ``cpu_throttled_ratio`` is the worst of
    theirs, and says nothing of another engine; else it is told of the container that all run in.
    """

    at: float
    cpu_utilization_ratio: float | None = None
    cpu_count: float | None = None
    cpu_throttled_ratio: float | None = None  # share of cgroup periods in which the quota was used up
    cpu_pressure_ratio: float | None = None  # PSI "some": share of time in which a task waited for a CPU
    engine_cpu_cores: float | None = None  # cores used by the engines' processes
    memory_available_bytes: float | None = None
    engines: Mapping[str, EngineHost] = field(default_factory=dict)
