"""The last minutes of snapshots."""

from __future__ import annotations

from dataclasses import dataclass

from pinchpoint.snapshot.engine import EngineReading
from pinchpoint.snapshot.probe import ProbeReading
from pinchpoint.snapshot.tick import Snapshot


@dataclass(frozen=True, slots=True)
class Window:
    """Snapshots in time order, none older than ``span_seconds`` before the newest. ``append`` returns a new window.

    The histories drop repeats, so a scrape that served five ticks counts once.
    """

    span_seconds: float
    snapshots: tuple[Snapshot, ...] = ()

    def append(self, snapshot: Snapshot) -> Window:
        """This window with one more tick and without what has grown too old.

        Raises ``ValueError`` when the tick is not newer than the last one: a window runs forward.
        """
        if self.snapshots and snapshot.at <= self.snapshots[-1].at:
            raise ValueError(f"tick at {snapshot.at} is not newer than the window's last at {self.snapshots[-1].at}")
        oldest = snapshot.at - self.span_seconds
        return Window(self.span_seconds, (*(s for s in self.snapshots if s.at >= oldest), snapshot))

    def last(self, seconds: float) -> Window:
        """The newest ``seconds`` of this window."""
        if not self.snapshots:
            return self
        oldest = self.snapshots[-1].at - seconds
        return Window(seconds, tuple(s for s in self.snapshots if s.at >= oldest))

    @property
    def latest(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def engine(self, name: str) -> tuple[EngineReading, ...]:
        """Each distinct scrape of one engine, oldest first."""
        readings = (reading for s in self.snapshots if (reading := s.engine(name)) is not None)
        return tuple({reading.at: reading for reading in readings}.values())

    def probes(self) -> tuple[ProbeReading, ...]:
        """Each distinct probe, oldest first."""
        found: dict[tuple[str, float], ProbeReading] = {}
        last: tuple[ProbeReading, ...] = ()
        for snapshot in self.snapshots:
            if snapshot.probes != last:  # the same objects for many ticks: quick to tell
                last = snapshot.probes
                found |= {(p.target, p.at): p for p in last}
        return tuple(sorted(found.values(), key=lambda p: p.at))
