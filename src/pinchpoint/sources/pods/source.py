"""The pods source: what the kubelet said last, or why it said nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from pinchpoint.snapshot import Absence, Reason
from pinchpoint.sources.pods.devices import PodDevice, decode
from pinchpoint.sources.pods.kubelet import KubeletError, is_there, list_pod_resources
from pinchpoint.sources.pods.settings import PodSettings

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsReading:
    """The GPUs and MIG devices that this node's containers had at ``at``."""

    at: float
    devices: tuple[PodDevice, ...]


class PodSource:
    """Asks the kubelet of this node. Logs once when it does not answer, and once when it does again."""

    def __init__(self, settings: PodSettings, clock: Callable[[], float]) -> None:
        self.settings, self._clock = settings, clock
        self._failing: Reason | None = None

    async def read(self) -> PodsReading | Absence | None:
        """``None`` where there is no kubelet, which is no fault."""
        at = self._clock()
        try:
            if not is_there(self.settings.socket):
                self._failing = None
                return None
            answer = await list_pod_resources(self.settings.socket, self.settings.timeout_seconds)
            devices = await asyncio.to_thread(decode, answer)  # an answer may be megabytes
        except KubeletError as error:
            return self._absence(at, error.reason, error.detail)
        except ValueError:
            return self._absence(at, Reason.INVALID, "its answer is no ListPodResourcesResponse; who listens there?")
        if self._failing:
            log.info("the kubelet answers again", was=str(self._failing))
            self._failing = None
        return PodsReading(at=at, devices=devices)

    def _absence(self, at: float, reason: Reason, detail: str) -> Absence:
        absence = Absence("pods", reason, f"kubelet at {self.settings.socket}: {detail}", at)
        if reason is not self._failing:
            log.warning("the kubelet does not say which pods have the GPUs", reason=reason, detail=absence.detail)
        self._failing = reason
        return absence
