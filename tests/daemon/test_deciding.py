"""From snapshots to scenes."""

from pinchpoint.config import Settings
from pinchpoint.daemon.deciding import Decider
from pinchpoint.daemon.remembered import Remembered
from pinchpoint.diagnosis import Bottleneck, Shown
from pinchpoint.snapshot import GpuReading, NvLink, PeerLink, SelfReport, Snapshot

REPORT = SelfReport(version="0", python_version="3")


def test_a_reload_changes_how_much_history_is_kept() -> None:
    decider = Decider(Settings(history_seconds=300))
    for at in range(200):
        decider.decide(Snapshot(at=float(at)), REPORT, 0.0)
    decider.settings = Settings(history_seconds=60)
    window = decider.decide(Snapshot(at=200.0), REPORT, 0.0).window
    assert [window.snapshots[0].at, window.snapshots[-1].at] == [140.0, 200.0]


def test_a_link_that_was_up_since_the_start_is_missed_when_it_goes_down_and_not_before() -> None:
    decider = Decider(Settings())
    links = (PeerLink("0", "1", "NV18", "ok"),)
    lost = []
    for at, up in enumerate((False, True, False, True)):
        gpus = tuple(GpuReading(gpu=g, uuid=f"GPU-{g}", at=float(at), nvlinks=(NvLink(link="0", up=up),)) for g in "01")
        topology = decider.decide(Snapshot(at=float(at), gpus=gpus, links=links), REPORT, 0.0).topology
        assert topology is not None
        lost.append(dict(topology.links_lost))
    assert lost == [{}, {}, {"0": ("0",), "1": ("0",)}, {}]


def test_an_engine_that_is_not_seen_again_is_forgotten_whatever_time_its_file_says() -> None:
    decider = Decider(Settings())

    def known(until: float) -> Remembered:
        return Remembered(shown=Shown(bottleneck=Bottleneck.HEALTHY, since=0.0, until=until), class_seconds={})

    decider.recall({"just": known(-1.0), "long ago": known(-1e6), "in a year": known(3e7), "never": known(1e300)})
    decider.decide(Snapshot(at=0.0), REPORT, 0.0)
    assert set(decider.unseen) == {"just"}
