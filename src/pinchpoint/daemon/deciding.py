"""From a snapshot to a scene: window, diagnosis, hysteresis, course, scaling. No I/O; the time is the snapshot's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pinchpoint.capacity import judge_scaling
from pinchpoint.config import Settings
from pinchpoint.daemon.remembered import Remembered
from pinchpoint.diagnosis import Course, Memory, begin, diagnose, lengthened, recent, settle, tally, watched
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.topology import learn_links, node_topology
from pinchpoint.diagnosis.verdict import Bottleneck, Settled
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import SelfReport, Snapshot, Window

COURSE_SECONDS = 6 * 3600.0  # a shift
COURSE_INTERVALS = 240  # of an engine that changes its class every 90 s


class Decider:
    """Remembers the window and each engine's settled class. Used by one thread at a time, but for ``unseen``."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.unseen: Mapping[str, Remembered] = {}  # of an earlier process, not met again yet
        self._window = Window(settings.history_seconds)
        self._memory = Memory(settings.diagnosis)
        self._settled: Mapping[str, Settled] = {}
        self._courses: Mapping[str, Course] = {}
        self._class_seconds: Mapping[tuple[str, Bottleneck], float] = {}
        self._links_ever_up: Mapping[str, frozenset[str]] = {}

    def recall(self, remembered: Mapping[str, Remembered]) -> None:
        """Goes on with what an earlier process knew, on the clock of snapshots. Before the first tick."""
        self.unseen = remembered

    def decide(self, snapshot: Snapshot, report: SelfReport, unix_offset: float) -> Scene:
        thresholds, now = self.settings.diagnosis, snapshot.at
        before = self._window.latest
        if self._window.span_seconds != self.settings.history_seconds:
            self._window = Window(self.settings.history_seconds, self._window.snapshots)
        self._window = self._window.append(snapshot)
        gap = before is not None and not watched(before.at, now, thresholds)
        self._follow(snapshot, gap=gap)
        elapsed = 0.0 if before is None or gap else now - before.at
        known = {key: seconds for key, seconds in self._class_seconds.items() if key[0] in self._settled}
        self._class_seconds = tally(known, self._settled.values(), elapsed)
        self._links_ever_up = learn_links(self._links_ever_up, snapshot.gpus)
        return Scene(
            snapshot=snapshot,
            window=self._window,
            self_report=report,
            verdicts=self._settled,
            scaling={name: judge_scaling(settled.diagnosis) for name, settled in self._settled.items()},
            class_seconds=self._class_seconds,
            courses=self._courses,
            topology=node_topology(snapshot, self._links_ever_up),
            unix_offset_seconds=unix_offset,
            thresholds=thresholds,
        )

    def _follow(self, snapshot: Snapshot, *, gap: bool) -> None:
        """Each engine's class and its course at this tick; those that are gone are forgotten."""
        thresholds, settled_before = self.settings.diagnosis, self._settled
        names, oldest = snapshot.engine_names(), snapshot.at - COURSE_SECONDS
        self._meet(names)
        self._settled = {name: self._settle(name, snapshot.at, thresholds) for name in names}
        self._courses = {
            name: recent(
                lengthened(self._courses.get(name, ()), settled_before.get(name), settled, gap=gap),
                oldest,
                COURSE_INTERVALS,
            )
            for name, settled in self._settled.items()
        }
        self._memory.forget_all_but(self._settled)
        self.unseen = {
            name: each
            for name, each in self.unseen.items()
            if name not in self._settled and abs(snapshot.at - each.shown.until) <= thresholds.resume_seconds
        }

    def _meet(self, names: Iterable[str]) -> None:
        """Takes over what is remembered of engines that are seen for the first time."""
        for name in names:
            if (known := self.unseen.get(name)) is not None and name not in self._settled:
                self._courses = {**self._courses, name: known.course}
                told = {(name, bottleneck): seconds for bottleneck, seconds in known.class_seconds.items()}
                self._class_seconds = {**self._class_seconds, **told}

    def _settle(self, engine: str, now: float, thresholds: Thresholds) -> Settled:
        if self._memory.thresholds is not thresholds:
            self._memory = Memory(thresholds)
        previous = self._settled.get(engine)
        held = previous.diagnosis.bottleneck if previous else None
        diagnosis = diagnose(self._window, engine, now, thresholds, self._memory, held)
        if previous is None:
            known = self.unseen.get(engine)
            return begin(diagnosis, known.shown if known else None, thresholds)
        return settle(previous, diagnosis, thresholds)
