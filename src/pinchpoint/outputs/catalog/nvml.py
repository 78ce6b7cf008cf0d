"""What asking NVML costs us and the driver, and the call that does not come back."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Metric, Sample, counter, gauge
from pinchpoint.outputs.scene import Scene


def _seconds(scene: Scene) -> Iterable[Sample]:
    return (((c.call,), c.seconds_total) for c in scene.self_report.nvml.calls)


def _calls(scene: Scene) -> Iterable[Sample]:
    return (((c.call,), c.calls_total) for c in scene.self_report.nvml.calls)


def _field_seconds(scene: Scene) -> Iterable[Sample]:
    return (((field,), seconds) for field, seconds in scene.self_report.nvml.field_seconds_total.items())


def _stuck(scene: Scene) -> Iterable[Sample]:
    return (((c.gpu, c.call), c.seconds) for c in scene.self_report.nvml.stuck)


NVML_METRICS: tuple[Metric, ...] = (
    counter("gpu_nvml_calls_total", ("call",), _calls, "Calls of an NVML function that returned, over all GPUs."),
    counter("gpu_nvml_call_seconds_total", ("call",), _seconds, "Time spent in an NVML function, over all GPUs."),
    counter(
        "gpu_nvml_field_seconds_total",
        ("field",),
        _field_seconds,
        "The driver's own time for a field value, by NVML's id; what it read together may bear the same time each.",
    ),
    gauge(
        "gpu_nvml_call_stuck_seconds",
        ("gpu", "call"),
        _stuck,
        "Age of an NVML call in progress, from a second on; gpu is empty for a call about the node.",
    ),
)
