"""One GPU's memory, by one version of NVML's struct only: the first counts as used what the driver reserves."""

from collections.abc import Mapping

from pinchpoint.snapshot import Reason
from pinchpoint.sources.gpu.nvml import MEMORY_V2, FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier, number

SLACK_BYTES = 16 * 2**20  # above rounding (a MiB), below the least that a driver reserves
FIELDS = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")
_bytes = number(highest=1e14)


class Memory:
    """Total, used and reserved: by the struct's second version, by its first where the driver has no other.

    Used, free and reserved must add up to the total, else all are dropped: there is no telling which one is wrong.
    """

    tier = Tier.FAST
    fields = ()

    def __init__(self, nvml: NvmlGpu) -> None:
        self._nvml = nvml
        self._old = False

    def read(self, _at: float, _fields: FieldAnswers, _so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """A card that can't tell by either version has no memory of its own: it shares the host's."""
        memory = Reason.NOT_SUPPORTED if self._old else self._nvml.ask("nvmlDeviceGetMemoryInfo", MEMORY_V2)
        if memory is Reason.NOT_SUPPORTED:
            memory = self._nvml.ask("nvmlDeviceGetMemoryInfo")
            self._old = not isinstance(memory, Reason)  # for good: the two in one series would be a jump
        if isinstance(memory, Reason):
            model = {"memory_model": "unified"} if memory is Reason.NOT_SUPPORTED else {}
            return dict.fromkeys(FIELDS, memory) | model
        reserved = 0 if self._old else memory.reserved
        parts_missing = abs(memory.used + memory.free + reserved - memory.total)
        if not memory.total or parts_missing > SLACK_BYTES:
            return dict.fromkeys(FIELDS, Reason.INVALID)
        sizes = (memory.total, memory.used, reserved)
        answers = {field: _bytes(size) for field, size in zip(FIELDS, sizes, strict=True)}
        if self._old:
            answers["memory_reserved_bytes"] = Reason.NOT_SUPPORTED
        return answers | {"memory_model": "framebuffer"}
