"""One line in the log for each change of the engines watched, and of the class that is shown of one."""

from dataclasses import replace

from structlog.testing import capture_logs

from pinchpoint.daemon.announcing import Announcer, announce_engines
from pinchpoint.diagnosis.verdict import Bottleneck, Settled
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Absence, Reason
from tests.outputs.exposition.scenes import full_scene, settled


def scene(*verdicts: Settled, **snapshot: object) -> Scene:
    base = full_scene()
    return replace(
        base, verdicts={v.diagnosis.engine: v for v in verdicts}, snapshot=replace(base.snapshot, **snapshot)
    )


def collecting() -> Scene:
    unknown = settled(bottleneck=Bottleneck.UNKNOWN)
    return scene(replace(unknown, diagnosis=replace(unknown.diagnosis, signals={"scrapes": 2.0})))


def announced(*scenes: Scene) -> list[tuple[str, str, str]]:
    announcer = Announcer()
    with capture_logs() as lines:
        for each in scenes:
            announcer.announce(each, min_scrapes=3)
    assert all(line["event"] == "bottleneck changes" and line["log_level"] == "info" for line in lines)
    assert all(line["why"] == "because" for line in lines)
    return [(line["engine"], line["from"], line["to"]) for line in lines]


def test_a_class_that_stays_is_said_once_and_its_change_once() -> None:
    wall, healthy = scene(settled()), scene(settled(bottleneck=Bottleneck.HEALTHY))
    assert announced(wall, wall, healthy, healthy, wall) == [
        ("chat", "none", "kv_capacity"),
        ("chat", "kv_capacity", "healthy"),
        ("chat", "healthy", "kv_capacity"),
    ]


def test_nothing_is_said_before_there_can_be_a_verdict() -> None:
    starting = Absence("engine/chat", Reason.STARTING, "not scraped yet", 0.0)
    no_data = scene(settled(bottleneck=Bottleneck.NO_DATA), absences=(starting,))
    held = scene(settled(bottleneck=Bottleneck.NO_DATA))  # the first scrape has come, the class is still held
    assert announced(no_data, held, collecting(), scene(settled())) == [("chat", "none", "kv_capacity")]


def test_an_engine_that_is_back_is_said_when_there_is_a_verdict() -> None:
    timeout = Absence("engine/chat", Reason.TIMEOUT, "no answer", 0.0)
    down = scene(settled(bottleneck=Bottleneck.NO_DATA), absences=(timeout,))
    assert announced(scene(settled()), down, collecting(), scene(settled())) == [
        ("chat", "none", "kv_capacity"),
        ("chat", "kv_capacity", "no_data"),
        ("chat", "no_data", "kv_capacity"),
    ]


def test_an_engine_that_is_down_from_the_start_is_said() -> None:
    refused = Absence("engine/chat", Reason.CONNECT_REFUSED, "nobody listens", 0.0)
    down = scene(settled(bottleneck=Bottleneck.NO_DATA), absences=(refused,))
    assert announced(down, down) == [("chat", "none", "no_data")]


def test_an_honest_unknown_is_a_verdict() -> None:
    unknown = settled(bottleneck=Bottleneck.UNKNOWN)
    enough = scene(replace(unknown, diagnosis=replace(unknown.diagnosis, signals={"scrapes": 5.0})))
    assert announced(enough) == [("chat", "none", "unknown")]


def test_each_engine_has_its_own_line_and_one_that_comes_back_begins_anew() -> None:
    both, one = scene(settled(), settled("rag", Bottleneck.IDLE)), scene(settled())
    assert announced(both, one, both) == [
        ("chat", "none", "kv_capacity"),
        ("rag", "none", "idle"),
        ("rag", "none", "idle"),
    ]


def test_engines_that_come_and_go_are_one_line_and_those_that_stay_none() -> None:
    with capture_logs() as lines:
        announce_engines({"chat", "rag"}, {"chat", "rag2"})
        announce_engines({"chat"}, {"chat"})
        announce_engines(set(), {f"e{number}" for number in range(7)})
    assert [(line["watched"], line["came"], line["gone"]) for line in lines] == [
        (2, "rag2", "rag"),
        (7, "e0, e1, e2, e3, e4 and 2 more", "none"),
    ]
