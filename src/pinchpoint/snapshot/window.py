"""The last minutes of snapshots."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.engine import EngineReading
from pinchpoint.snapshot.probe import ProbeReading
from pinchpoint.snapshot.tick import Snapshot


@dataclass(frozen=True, slots=True)
class _History:
    """The distinct scrapes of one engine, oldest first, and until which tick each was the newest: +inf, it still is."""

    readings: tuple[EngineReading, ...] = ()
    until: tuple[float, ...] = ()

    def ended(self, at: float) -> _History:
        """At the tick ``at`` the newest scrape was seen for the last time."""
        return self if self.until[-1] < math.inf else _History(self.readings, (*self.until[:-1], at))

    def with_newest(self, reading: EngineReading) -> _History:
        """A scrape of the same time takes the place of the one it corrects."""
        others = [(other, until) for other, until in zip(self.readings, self.until, strict=True)]
        for place, (other, _) in enumerate(others):
            if other.at == reading.at:
                others[place] = (reading, math.inf)
                break
        else:
            others.append((reading, math.inf))
        readings, until = zip(*others, strict=True)
        return _History(readings, until)

    def since(self, oldest: float) -> _History:
        """Without what was last seen before ``oldest``."""
        if not self.until or self.until[0] >= oldest:
            return self
        kept = [(reading, until) for reading, until in zip(self.readings, self.until, strict=True) if until >= oldest]
        return _History(tuple(reading for reading, _ in kept), tuple(until for _, until in kept))


@dataclass(frozen=True, slots=True)
class Window:
    """Snapshots in time order, none older than ``span_seconds`` before the newest. ``append`` returns a new window.

    The histories drop repeats, so a scrape that served five ticks counts once.
    """

    span_seconds: float
    snapshots: tuple[Snapshot, ...] = ()
    # Carried from window to window by ``append``: to look at each snapshot for each engine takes longer than a tick.
    _engines: Mapping[str, _History] | None = field(default=None, repr=False, compare=False)
    _probed: Mapping[str, float] = field(default_factory=dict, repr=False, compare=False)  # engine: tick, the last one

    def append(self, snapshot: Snapshot) -> Window:
        """This window with one more tick and without what has grown too old.

        Raises ``ValueError`` when the tick is not newer than the last one: a window runs forward.
        """
        if self.snapshots and snapshot.at <= self.snapshots[-1].at:
            raise ValueError(f"tick at {snapshot.at} is not newer than the window's last at {self.snapshots[-1].at}")
        oldest = snapshot.at - self.span_seconds
        kept = self._since(oldest)
        engines, probed = self._engines, self._probed
        if engines is None:
            engines, probed = _told(self.snapshots)
        before = self.snapshots[-1] if self.snapshots else None
        engines = {
            name: recent
            for name, history in _with(engines, before, snapshot).items()
            if (recent := history.since(oldest)).readings
        }
        probed = {**probed, **dict.fromkeys(snapshot.probed_engines(), snapshot.at)}
        return Window(self.span_seconds, (*kept, snapshot), engines, probed)

    def last(self, seconds: float) -> Window:
        """The newest ``seconds`` of this window."""
        if not self.snapshots:
            return self
        recent = self._since(self.snapshots[-1].at - seconds)
        return self if len(recent) == len(self.snapshots) and seconds == self.span_seconds else Window(seconds, recent)

    @property
    def latest(self) -> Snapshot | None:
        return self.snapshots[-1] if self.snapshots else None

    def engine(self, name: str) -> tuple[EngineReading, ...]:
        """Each distinct scrape of one engine, oldest first."""
        if self._engines is not None:
            history = self._engines.get(name)
            return history.readings if history else ()
        readings = (reading for s in self.snapshots if (reading := s.engine(name)) is not None)
        return tuple({reading.at: reading for reading in readings}.values())

    def probes_of(self, engine: str) -> tuple[ProbeReading, ...]:
        """Each distinct probe that led to one engine, oldest first."""
        if self._engines is not None and engine not in self._probed:
            return ()
        found = {(probe.target, probe.at): probe for s in self.snapshots for probe in s.probes_of(engine)}
        return tuple(sorted(found.values(), key=lambda probe: probe.at))

    def _since(self, oldest: float) -> tuple[Snapshot, ...]:
        return self.snapshots[bisect_left(self.snapshots, oldest, key=lambda snapshot: snapshot.at) :]


def _told(snapshots: Iterable[Snapshot]) -> tuple[Mapping[str, _History], Mapping[str, float]]:
    """The histories of all engines, and which engines were ever probed."""
    engines: Mapping[str, _History] = {}
    probed: dict[str, float] = {}
    before: Snapshot | None = None
    for snapshot in snapshots:
        engines, before = _with(engines, before, snapshot), snapshot
        probed |= dict.fromkeys(snapshot.probed_engines(), snapshot.at)
    return engines, probed


def _with(engines: Mapping[str, _History], before: Snapshot | None, snapshot: Snapshot) -> Mapping[str, _History]:
    """The histories one tick later. Most engines were not scraped anew, and theirs stay as they are."""
    told = dict(engines)
    newest = snapshot.engines_by_name()
    if before is not None:
        for name, reading in before.engines_by_name().items():
            if newest.get(name) is not reading and name in told:
                told[name] = told[name].ended(before.at)
    for name, reading in newest.items():
        history = told.get(name) or _History()
        if not history.readings or history.readings[-1] is not reading or history.until[-1] < math.inf:
            told[name] = history.with_newest(reading)
    return told
