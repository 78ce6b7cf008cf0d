"""Has the GPU source let go of the driver and take it again, for the HTTP server and for whoever asks it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import structlog

from pinchpoint.config import Settings
from pinchpoint.daemon.node import GpuSourceLike
from pinchpoint.outputs.web import GpuSwitch

log = structlog.get_logger(__name__)

POLL_SECONDS = 0.05
GRACE_SECONDS = 1.0  # beyond the deadline after which a call counts as hung


@runtime_checkable
class HoldsDriver(Protocol):
    """A source of GPU readings with a driver that it can let go of."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def held_by(self, now: float) -> str | None: ...


def gpu_switch(gpus: GpuSourceLike, settings: Settings, clock: Callable[[], float]) -> GpuSwitch:
    """Pause waits until NVML is down, and no longer than a call may take; it stays asked for when that is too short."""
    patience = settings.gpu.deadline_seconds + GRACE_SECONDS

    async def pause() -> tuple[bool, str]:
        if not isinstance(gpus, HoldsDriver):
            return False, "there is no driver to let go of: these GPUs are simulated, or gpu.enabled is false"
        log.info("a pause of the GPUs is asked for")
        gpus.pause()
        limit = clock() + patience
        holder = gpus.held_by(clock())
        while holder is not None and clock() < limit:
            await asyncio.sleep(POLL_SECONDS)
            holder = gpus.held_by(clock())
        if holder is None:
            return True, "paused: NVML is shut down. Reset or unbind the GPU, then POST /-/gpu/resume"
        log.warning("the GPUs are not let go of", held_by=holder)
        return False, f"NOT paused: {holder}. It is done when that ends; or stop pinchpoint"

    async def resume() -> tuple[bool, str]:
        if not isinstance(gpus, HoldsDriver):
            return False, "there is no driver to take again: these GPUs are simulated, or gpu.enabled is false"
        log.info("the GPUs are resumed")
        gpus.resume()
        return True, "resumed: NVML is being started"

    return GpuSwitch(token=settings.gpu.token(), pause=pause, resume=resume)
