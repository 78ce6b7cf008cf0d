"""From snapshots to scenes."""

from pinchpoint.config import Settings
from pinchpoint.daemon.deciding import Decider
from pinchpoint.snapshot import SelfReport, Snapshot

REPORT = SelfReport(version="0", python_version="3")


def test_a_reload_changes_how_much_history_is_kept() -> None:
    decider = Decider(Settings(history_seconds=300))
    for at in range(200):
        decider.decide(Snapshot(at=float(at)), REPORT, 0.0)
    decider.settings = Settings(history_seconds=60)
    window = decider.decide(Snapshot(at=200.0), REPORT, 0.0).window
    assert [window.snapshots[0].at, window.snapshots[-1].at] == [140.0, 200.0]
