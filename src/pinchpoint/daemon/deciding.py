"""From a snapshot to a scene: window, diagnosis, hysteresis, scaling. No I/O; the time is the snapshot's."""

from __future__ import annotations

from collections.abc import Mapping

from pinchpoint.capacity import judge_scaling
from pinchpoint.config import Settings
from pinchpoint.diagnosis import Memory, diagnose, settle, tally
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.topology import learn_links, node_topology
from pinchpoint.diagnosis.verdict import Bottleneck, Settled
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import SelfReport, Snapshot, Window


class Decider:
    """Remembers the window and each engine's settled class. Used by one thread at a time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._window = Window(settings.history_seconds)
        self._memory = Memory(settings.diagnosis)
        self._settled: Mapping[str, Settled] = {}
        self._class_seconds: Mapping[tuple[str, Bottleneck], float] = {}
        self._links_ever_up: Mapping[str, frozenset[str]] = {}

    def decide(self, snapshot: Snapshot, report: SelfReport, unix_offset: float) -> Scene:
        thresholds = self.settings.diagnosis
        before = self._window.latest
        if self._window.span_seconds != self.settings.history_seconds:
            self._window = Window(self.settings.history_seconds, self._window.snapshots)
        self._window = self._window.append(snapshot)
        self._settled = {name: self._settle(name, snapshot.at, thresholds) for name in snapshot.engine_names()}
        self._memory.forget_all_but(self._settled)
        elapsed = snapshot.at - before.at if before else 0.0
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
            topology=node_topology(snapshot, self._links_ever_up),
            unix_offset_seconds=unix_offset,
            thresholds=thresholds,
        )

    def _settle(self, engine: str, now: float, thresholds: Thresholds) -> Settled:
        if self._memory.thresholds is not thresholds:
            self._memory = Memory(thresholds)
        diagnosis = diagnose(self._window, engine, now, thresholds, self._memory)
        return settle(self._settled.get(engine), diagnosis, thresholds)
