"""Says in the log which engines are watched, and when the class that is shown of one changes: one line each."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import structlog

from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Reason, Snapshot

NAMED_AT_MOST = 5  # engines in one line of the log

log = structlog.get_logger(__name__)


def announce_engines(before: AbstractSet[str], now: AbstractSet[str]) -> None:
    """One line where the engines watched are others than before, by name: an edit of a list shows that it was taken."""
    if before != now:
        log.info("watched engines change", watched=len(now), came=_few(now - before), gone=_few(before - now))


def _few(names: AbstractSet[str]) -> str:
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    return ", ".join(sorted(names)[:NAMED_AT_MOST]) + more if names else "none"


class Announcer:
    """Remembers what was said of each engine. The first verdict is said too, but not that there is none yet."""

    def __init__(self) -> None:
        self._said: dict[str, Bottleneck] = {}

    def announce(self, scene: Scene, min_scrapes: int) -> None:
        """One line for each engine whose class is another than was said last."""
        self._said = {name: said for name, said in self._said.items() if name in scene.verdicts}
        for name, settled in scene.verdicts.items():
            diagnosis, before = settled.diagnosis, self._said.get(name)
            if diagnosis.bottleneck is before or _is_collecting(scene.snapshot, settled.diagnosis, min_scrapes):
                continue
            self._said[name] = diagnosis.bottleneck
            change = {"from": str(before or "none"), "to": str(diagnosis.bottleneck)}
            log.info("bottleneck changes", engine=name, **change, why=diagnosis.why)


def _is_collecting(snapshot: Snapshot, shown: Diagnosis, min_scrapes: int) -> bool:
    """Nothing can be known yet: not asked, or asked too few times."""
    if shown.bottleneck not in (Bottleneck.UNKNOWN, Bottleneck.NO_DATA):
        return False
    absence = snapshot.absence(f"engine/{shown.engine}")
    asked_in_vain = absence is not None and absence.reason is not Reason.STARTING
    return not asked_in_vain and shown.signals.get("scrapes", 0.0) < min_scrapes
