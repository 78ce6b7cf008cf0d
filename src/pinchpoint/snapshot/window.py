"""The last minutes of snapshots."""

from __future__ import annotations

from bisect import bisect_left
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
        return Window(self.span_seconds, (*self._since(oldest), snapshot))

    def last(self, seconds: float) -> Window:
        """The newest ``seconds`` of this window."""
        if not self.snapshots:
            return self
        oldest = self.snapshots[-1].at - seconds
        return Window(seconds, self._since(oldest))

    @property
    def latest(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def engine(self, name: str) -> tuple[EngineReading, ...]:
        """Each distinct scrape of one engine, oldest first."""
        readings = (reading for s in self.snapshots if (reading := s.engine(name)) is not None)
        return tuple({reading.at: reading for reading in readings}.values())

    def probes_of(self, engine: str) -> tuple[ProbeReading, ...]:
        """Each distinct probe that led to one engine, oldest first."""
        found = {(probe.target, probe.at): probe for s in self.snapshots for probe in s.probes_of(engine)}
        return tuple(sorted(found.values(), key=lambda probe: probe.at))

    def _since(self, oldest: float) -> tuple[Snapshot, ...]:
        return self.snapshots[bisect_left(self.snapshots, oldest, key=lambda snapshot: snapshot.at) :]
