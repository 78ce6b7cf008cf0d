"""The window: runs forward, forgets what is old, counts each reading once."""

import pytest

from pinchpoint.snapshot import (
    Absence,
    EngineReading,
    Reason,
    ReplicaReading,
    Snapshot,
    Window,
)


def engine(at: float, name: str = "chat") -> EngineReading:
    return EngineReading(engine=name, at=at, replicas=(ReplicaReading(),))


def test_a_window_forgets_what_is_older_than_its_span() -> None:
    window = Window(10.0)
    for at in range(30):
        window = window.append(Snapshot(at=float(at)))
    assert [s.at for s in window.snapshots] == [float(at) for at in range(19, 30)]


def test_append_leaves_the_old_window_as_it_was() -> None:
    old = Window(10.0).append(Snapshot(at=1.0))
    old.append(Snapshot(at=2.0))
    assert [s.at for s in old.snapshots] == [1.0]


@pytest.mark.parametrize("at", [5.0, 4.9])
def test_a_window_does_not_run_backwards(at: float) -> None:
    window = Window(10.0).append(Snapshot(at=5.0))
    with pytest.raises(ValueError, match="not newer"):
        window.append(Snapshot(at=at))


def test_a_scrape_that_served_several_ticks_counts_once() -> None:
    scrape, next_scrape = engine(0.5), engine(4.5)
    window = Window(60.0)
    for at in range(1, 8):
        window = window.append(Snapshot(at=float(at), engines=(scrape if at < 5 else next_scrape,)))
    assert window.engine("chat") == (scrape, next_scrape)


def test_histories_tell_engines_apart() -> None:
    window = Window(60.0).append(Snapshot(at=1.0, engines=(engine(1.0), engine(1.0, "rag"))))
    assert window.engine("rag") == (engine(1.0, "rag"),)
    assert window.engine("other") == ()


def test_last_takes_the_newest_seconds() -> None:
    window = Window(60.0)
    for at in range(20):
        window = window.append(Snapshot(at=float(at)))
    assert [s.at for s in window.last(3.0).snapshots] == [16.0, 17.0, 18.0, 19.0]
    assert Window(60.0).last(3.0).latest is None


def test_a_snapshot_names_every_engine_read_or_absent() -> None:
    absence = Absence("engine/rag", Reason.TIMEOUT, "no answer", 1.0)
    snapshot = Snapshot(at=1.0, engines=(engine(1.0),), absences=(absence, Absence("gpu", Reason.NO_LIBRARY, "", 1.0)))
    assert snapshot.engine_names() == ("chat", "rag")
    assert snapshot.absence("engine/rag") is absence
    assert snapshot.engine("rag") is None
