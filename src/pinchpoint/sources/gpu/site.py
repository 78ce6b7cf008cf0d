"""What every part of the GPU source stands on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pinchpoint.sources.gpu.calls import CallBook
from pinchpoint.sources.gpu.history import History
from pinchpoint.sources.gpu.host_pids import HostPids
from pinchpoint.sources.gpu.settings import GpuSettings


@dataclass(frozen=True, slots=True)
class Site:
    """One per source; outlives NVML's generations. ``calls`` and the histories are what must not begin anew."""

    settings: GpuSettings
    clock: Callable[[], float]
    sysfs: Path
    calls: CallBook
    host_pids: HostPids = field(default_factory=HostPids)
    _histories: dict[str, History] = field(default_factory=dict)

    def history(self, uuid: str) -> History:
        """The history of the GPU of that UUID."""
        return self._histories.setdefault(uuid, History(self.settings.fresh_for_seconds))
