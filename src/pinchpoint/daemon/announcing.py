"""Says in the log when the class that is shown of an engine changes: one line, with the reason."""

from __future__ import annotations

import structlog

from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Reason, Snapshot

log = structlog.get_logger(__name__)


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
