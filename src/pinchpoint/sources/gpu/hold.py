"""The hold on the driver: whether NVML may be open, and whether it is. The switch behind pause and resume."""

from __future__ import annotations

import os
import threading
from pathlib import Path

DEVICES = "/dev/nvidia"


class Hold:
    """Set from any thread by ``pause`` and ``resume``; the thread that opens NVML asks ``take`` before it does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._taken = False
        self.paused_at: float | None = None  # since when a pause is asked for

    def pause(self, now: float) -> None:
        with self._lock:
            self.paused_at = now if self.paused_at is None else self.paused_at

    def resume(self) -> None:
        with self._lock:
            self.paused_at = None

    def take(self) -> bool:
        """Whether NVML may be opened now; if so it counts as open until ``drop``."""
        with self._lock:
            self._taken = self.paused_at is None
            return self._taken

    def drop(self) -> None:
        with self._lock:
            self._taken = False

    @property
    def taken(self) -> bool:
        return self._taken


def open_device_files(process: Path = Path("/proc/self")) -> tuple[str, ...]:
    """The NVIDIA device files that this process has open: any of them keeps a GPU from being reset or unbound."""
    try:
        links = [entry.name for entry in (process / "fd").iterdir()]
    except OSError:
        return ()
    found = set()
    for link in links:
        try:
            target = os.readlink(process / "fd" / link)
        except OSError:
            continue  # closed meanwhile
        if target.startswith(DEVICES):
            found.add(target)
    return tuple(sorted(found))
