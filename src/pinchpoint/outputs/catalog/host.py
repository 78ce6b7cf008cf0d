"""The host family: the CPU side of the machine (or container) that the engines run on."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample
from pinchpoint.outputs.scene import Scene


def _plain(field: str, text: str, name: str | None = None) -> Metric:
    """A number of the host: the reading's field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return [((), getattr(scene.snapshot.host, field, None))]

    return Metric(name=f"host_{name or field}", kind=Kind.GAUGE, help=text, labels=(), read=read)


HOST_METRICS = (
    _plain("cpu_utilization_ratio", "Share of the CPUs that was busy over the last interval."),
    _plain("cpu_count", "CPUs that are online; of a container its host's.", name="cpus"),  # _count is a histogram's
    _plain("cpu_throttled_ratio", "Share of cgroup periods in which the CPU quota was used up."),
    _plain("cpu_pressure_ratio", "Share of time in which some task waited for a CPU (pressure stall, some)."),
    _plain("engine_cpu_cores", "CPU cores that the engines' processes used."),
    _plain("memory_available_bytes", "Host memory that can be had without swapping."),
)
