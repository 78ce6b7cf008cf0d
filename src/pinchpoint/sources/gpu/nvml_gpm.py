"""The profiling leaf of the door to NVML: GPM samples, and the metrics that lie between two of them (Hopper and newer).

Calls of several GPUs at once have crashed the driver's library, so one lock goes around all of them. Nobody waits long
for it: a GPU that hangs inside costs the others their profile, not their cycle.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.nvml import NvmlGpu, reason_for

PATIENCE_SECONDS = 0.05
_ALONE = threading.Lock()


class GpmSamples:
    """The newest sample of a GPU (of one GPU instance of it, with ``instance``) and the one before.

    Raises GpuDownError and LibraryDownError. ``close`` gives their memory back.
    """

    def __init__(self, nvml: NvmlGpu, instance: int | None = None) -> None:
        self._nvml, self._instance = nvml, instance
        self._taken: list[Any] = []  # oldest first, two at most
        self._spare: list[Any] = []  # allocated, without content
        self._request: Any = None

    def supported(self) -> bool | Reason:
        """Whether the GPU can be profiled this way."""
        answer = self._alone(lambda: self._nvml.ask("nvmlGpmQueryDeviceSupport"))
        return answer if isinstance(answer, Reason) else bool(answer.isSupportedDevice)

    def take(self) -> Reason | None:
        """Take a sample, or say why there is none. Only two are held."""
        return self._alone(self._take)  # type: ignore[no-any-return]

    def metrics(self, ids: Sequence[int]) -> dict[int, float | Reason]:
        """Each metric (``nvmlGpmMetricId_t``) between the last two samples, in NVML's units, or why it is missing."""
        if len(self._taken) < 2:
            return dict.fromkeys(ids, Reason.STARTING)
        answer: dict[int, float | Reason] | Reason = self._alone(lambda: self._metrics(ids))
        return dict.fromkeys(ids, answer) if isinstance(answer, Reason) else answer

    def close(self) -> None:
        """Free the samples; the next ``take`` is a first one. What another GPU's hang keeps from being freed leaks."""
        held, self._taken, self._spare = self._taken + self._spare, [], []
        self._alone(lambda: [self._call("nvmlGpmSampleFree", sample) for sample in held])

    def _take(self) -> Reason | None:
        if len(self._taken) == 2:
            self._spare.append(self._taken.pop(0))
        if not self._spare:
            fresh = self._call("nvmlGpmSampleAlloc")
            if isinstance(fresh, Reason):
                return fresh
            self._spare.append(fresh)
        sample = self._spare[0]
        of_instance = ("nvmlGpmMigSampleGet", self._instance) if self._instance is not None else ("nvmlGpmSampleGet",)
        answer = self._nvml.ask(*of_instance, sample)
        if isinstance(answer, Reason):
            return answer
        self._taken.append(self._spare.pop())
        return None

    def _metrics(self, ids: Sequence[int]) -> dict[int, float | Reason] | Reason:
        if self._request is None:
            self._request = pynvml.c_nvmlGpmMetricsGet_t(version=pynvml.NVML_GPM_METRICS_GET_VERSION)
        request = self._request
        request.numMetrics, request.sample1, request.sample2 = len(ids), *self._taken
        for place, metric_id in enumerate(ids):
            request.metrics[place].metricId = metric_id
        answer = self._call("nvmlGpmMetricsGet", request)
        if isinstance(answer, Reason):
            return answer
        return {metric_id: _value(request.metrics[place]) for place, metric_id in enumerate(ids)}

    def _call(self, call: str, *args: Any) -> Any:
        """A call that takes no GPU: its errors say nothing of the GPU's life, the next one that takes it does."""
        try:
            return self._nvml.ledger.make(call, getattr(pynvml, call), *args)
        except pynvml.NVMLError as error:
            return reason_for(error.value)

    def _alone(self, call: Callable[[], Any]) -> Any:
        if not _ALONE.acquire(timeout=PATIENCE_SECONDS):
            return Reason.TIMEOUT
        try:
            return call()
        finally:
            _ALONE.release()


def _value(metric: Any) -> float | Reason:
    if metric.nvmlReturn != pynvml.NVML_SUCCESS:
        return reason_for(metric.nvmlReturn)
    value = float(metric.value)
    return value if math.isfinite(value) else Reason.INVALID
