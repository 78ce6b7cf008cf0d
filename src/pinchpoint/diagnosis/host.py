"""Whether the host feeds the GPUs: CPU quota, pressure, cores."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLoad:
    """Means over the window; ``None`` is unknown."""

    host_cpu_utilization_ratio: float | None = None
    host_cpu_throttled_ratio: float | None = None  # share of cgroup periods in which the quota was used up
    host_cpu_pressure_ratio: float | None = None
    host_cpu_count: float | None = None
    host_engine_cpu_cores: float | None = None
    host_cpu_cores_needed: float | None = None  # at least: one a rank, one an engine core, one a front end
