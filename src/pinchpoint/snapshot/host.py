"""The host (or container) that the engines run on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReading:
    """CPU of the host over the last interval. Field names are the keys of a recording's ``host.jsonl``."""

    at: float
    cpu_utilization_ratio: float | None = None
    cpu_count: float | None = None
    cpu_throttled_ratio: float | None = None  # share of cgroup periods in which the quota was used up
    cpu_pressure_ratio: float | None = None  # PSI "some": share of time in which a task waited for a CPU
    engine_cpu_cores: float | None = None  # cores used by the engine's processes
    memory_available_bytes: float | None = None
