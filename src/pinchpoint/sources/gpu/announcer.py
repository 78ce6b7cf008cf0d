"""The log of the GPU source: one line when something is lost, one when it is back, none in between."""

from collections.abc import Iterable

import structlog

from pinchpoint.snapshot import Absence, GpuReading, GpuState, Reason

log = structlog.get_logger(__name__)


class Announcer:
    """Compares what is told now with what was told last."""

    def __init__(self) -> None:
        self._absent: Reason | None = None
        self._states: dict[str, GpuState] = {}

    def tell(self, gpus: Iterable[GpuReading], absence: Absence | None) -> None:
        """Log every change since the last call. ``absence`` is that of NVML as a whole."""
        if absence:
            if absence.reason not in (self._absent, Reason.STARTING, Reason.NOT_CONFIGURED):
                log.warning("NVML is unavailable", reason=str(absence.reason), detail=absence.detail)
                self._absent = absence.reason
            return
        if self._absent:
            log.info("NVML is available again", was=str(self._absent))
            self._absent = None
        for gpu in gpus:
            key = gpu.uuid or gpu.gpu
            before = self._states.pop(gpu.gpu, None) or self._states.get(key, GpuState.OK)  # its UUID may be new to us
            if gpu.state is not before and not gpu.up:
                log.warning("a GPU is lost", gpu=gpu.gpu, uuid=gpu.uuid, state=str(gpu.state), detail=gpu.detail)
            elif gpu.state is not before:
                log.info("a GPU is back", gpu=gpu.gpu, uuid=gpu.uuid, was=str(before))
            self._states[key] = gpu.state
