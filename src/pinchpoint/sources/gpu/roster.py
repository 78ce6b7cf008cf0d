"""Every GPU seen since the start: one that vanishes stays on the list, as lost. Identity is the UUID, not the index."""

from collections.abc import Iterable

from pinchpoint.snapshot import GpuReading, GpuState
from pinchpoint.sources.gpu.worker import down


class Roster:
    """Remembers who was there. Not a filter: a reading that is up passes as it is."""

    def __init__(self) -> None:
        self._known: dict[str, GpuReading] = {}

    def settle(self, views: Iterable[GpuReading], now: float) -> tuple[GpuReading, ...]:
        """One reading for each known GPU, in index order: its view, or that NVML doesn't enumerate it any more.

        A view without a UUID (a GPU that could not be opened since NVML's start) gets the identity of the missing GPU
        that last had its index.
        """
        views = tuple(views)
        present = {view.uuid for view in views}
        missing = {known.gpu: known for uuid, known in self._known.items() if uuid not in present}
        settled = []
        for view in views:
            who = missing.pop(view.gpu, None) if not view.uuid else None
            settled.append(down(who, view.state, view.detail, view.at) if who else view)
        self._known |= {view.uuid: view for view in settled if view.uuid}
        settled += [self._gone(known, now) for known in missing.values()]
        return tuple(sorted(settled, key=lambda reading: (int(reading.gpu), reading.uuid)))

    def _gone(self, known: GpuReading, now: float) -> GpuReading:
        if known.up:
            detail = (
                f"GPU {known.gpu}: NVML doesn't enumerate it any more; look for its Xid in dmesg, reboot or reseat it"
            )
            known = self._known[known.uuid] = down(known, GpuState.LOST, detail, now)
        return known
