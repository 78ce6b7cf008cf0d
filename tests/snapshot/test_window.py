"""The window: runs forward, forgets what is old, counts each reading once."""

from dataclasses import replace
from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.snapshot import (
    Absence,
    EngineReading,
    Placement,
    ProbeOutcome,
    ProbeReading,
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


def probe(at: float, target: str = "chat", engine: str | None = "chat") -> ProbeReading:
    return ProbeReading(target=target, placement=Placement.LOCAL, at=at, outcome=ProbeOutcome.OK, engine=engine)


def test_each_probe_of_an_engine_counts_once_and_those_of_others_not_at_all() -> None:
    window = Window(60.0)
    for at in range(1, 8):
        latest = probe(1.0 if at < 5 else 4.5)
        window = window.append(
            Snapshot(at=float(at), probes=(latest, probe(2.0, "rag", "rag"), probe(3.0, "api", None)))
        )
    assert window.probes_of("chat") == (probe(1.0), probe(4.5))
    assert window.probes_of("rag") == (probe(2.0, "rag", "rag"),)
    assert window.probes_of("api") == ()


def test_a_changed_copy_of_a_snapshot_finds_its_own_engines() -> None:
    snapshot = Snapshot(at=1.0, engines=(engine(1.0),))
    assert replace(snapshot, engines=(engine(2.0, "rag"),)).engine_names() == ("rag",)
    assert snapshot == Snapshot(at=1.0, engines=(engine(1.0),))


def test_asking_for_one_engine_takes_as_long_beside_a_thousand_as_alone() -> None:
    def seconds(engines: int) -> float:
        readings = tuple(engine(1.0, f"e{number}") for number in range(engines))
        window = Window(600.0, tuple(Snapshot(at=float(at), engines=readings) for at in range(100)))
        taken = []
        for _ in range(20):
            began = perf_counter()
            window.engine(f"e{engines - 1}")
            taken.append(perf_counter() - began)
        return min(taken)

    assert seconds(1000) < 10 * seconds(1)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {name: st.sampled_from(["scraped", "as before", "corrected", "absent"]) for name in ("chat", "code")}
        ),
        max_size=25,
    ),
    st.integers(1, 8),
)
def test_a_window_that_grew_tick_by_tick_tells_what_its_snapshots_tell(ticks, span) -> None:
    window = Window(float(span))
    last: dict[str, EngineReading] = {}
    for at, said in enumerate(ticks):
        for name, what in said.items():
            if what == "scraped" or name not in last:
                last[name] = engine(float(at), name)
            elif what == "corrected":  # the same scrape, of which more is known meanwhile
                last[name] = replace(last[name], warnings=(f"corrected at {at}",))
        shown = tuple(last[name] for name, what in said.items() if what != "absent")
        window = window.append(Snapshot(at=float(at), engines=shown))
        looked_at_anew = Window(window.span_seconds, window.snapshots)
        for name in said:
            assert window.engine(name) == looked_at_anew.engine(name)
            assert window.probes_of(name) == looked_at_anew.probes_of(name)
            again = looked_at_anew.append(Snapshot(at=at + 0.5))
            assert again.engine(name) == Window(span, again.snapshots).engine(name)
