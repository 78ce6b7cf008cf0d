"""The MIG instances that a GPU is split into: which they are now, and the memory and activity of each.

Handles of instances die when the card is split anew, and their values are used again for others: none outlives a cycle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pinchpoint.snapshot import MigInstance, Reason
from pinchpoint.sources.gpu.gpm import Profile
from pinchpoint.sources.gpu.memory import Memory
from pinchpoint.sources.gpu.nvml import FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier

SHARED = ("memory_total_bytes", "memory_used_bytes", "sm_active_ratio", "tensor_active_ratio", "dram_active_ratio")
_PROFILE = re.compile(r" MIG ([0-9a-z.+-]{1,32})$")  # NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb+me


class MigInstances:
    """Enumerates anew at each reading; an index without an instance is passed over."""

    tier = Tier.MEDIUM
    fields = ()

    def __init__(self, nvml: NvmlGpu, clock: Callable[[], float]) -> None:
        self._nvml, self._clock = nvml, clock
        self._profiles: dict[str, Profile] = {}  # by the UUID of the instance

    def read(self, at: float, _fields: FieldAnswers, so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """None of them while the card is whole. Raises GpuDownError and LibraryDownError."""
        handles = self._nvml.instances() if so_far.get("mig_mode") is True else {}
        told: dict[str, MigInstance] = {}
        parts: set[str] = set()  # GPU instances that have been told
        for index, handle in {} if isinstance(handles, Reason) else handles.items():
            mig = _identity(index, handle)
            if mig is None:
                continue
            told[mig.uuid] = mig if mig.gpu_instance in parts else replace(mig, **self._shared(mig, handle, at))
            parts.add(mig.gpu_instance)
        for gone in self._profiles.keys() - told.keys():
            self._profiles.pop(gone).close()
        return {"mig_instances": handles if isinstance(handles, Reason) else tuple(told.values())}

    def close(self) -> None:
        """Free the profiling samples."""
        for profile in self._profiles.values():
            profile.close()

    def _shared(self, mig: MigInstance, handle: NvmlGpu, at: float) -> dict[str, Any]:
        """What belongs to the GPU instance, whichever of its compute instances is asked."""
        profile = self._profiles.setdefault(mig.uuid, Profile(self._nvml, self._clock, int(mig.gpu_instance)))
        answers = {**Memory(handle).read(at, {}, {}), **profile.measure()}
        return {field: answer for field in SHARED if not isinstance(answer := answers[field], Reason)}


def _identity(index: int, handle: NvmlGpu) -> MigInstance | None:
    """``None`` if it was taken away while it was asked."""
    uuid, gpu_instance, compute_instance, name = (
        handle.ask(f"nvmlDeviceGet{what}") for what in ("UUID", "GpuInstanceId", "ComputeInstanceId", "Name")
    )
    if any(isinstance(answer, Reason) for answer in (uuid, gpu_instance, compute_instance)):
        return None
    profile = None if isinstance(name, Reason) else _PROFILE.search(name)
    return MigInstance(
        uuid=uuid,
        gpu_instance=str(gpu_instance),
        compute_instance=str(compute_instance),
        index=index,
        profile=profile[1] if profile else None,
    )
