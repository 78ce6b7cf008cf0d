"""Recordings with holes: what was before one is no evidence of what is after it, and nobody knows what was within."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from pinchpoint.diagnosis import Bottleneck, Interval, Thresholds, diagnose, judge_recording
from pinchpoint.snapshot import Snapshot, Window
from pinchpoint.sources.recording import read_recording
from tests.diagnosis.case import load

CASES = Path(__file__).parent / "cases"
REAL = Path("tests/data/vllm-real")


def later(snapshots: Sequence[Snapshot], seconds: float) -> list[Snapshot]:
    """The same, scraped ``seconds`` later."""
    return [
        replace(
            each,
            at=each.at + seconds,
            engines=tuple(replace(engine, at=engine.at + seconds) for engine in each.engines),
            gpus=tuple(replace(gpu, at=gpu.at + seconds) for gpu in each.gpus),
        )
        for each in snapshots
    ]


def spoilt(snapshots: Sequence[Snapshot], start: int, end: int, hole: float) -> list[Snapshot]:
    """Without those from ``start`` to ``end``, and as many seconds more."""
    return [*snapshots[:start], *later(snapshots[end:], hole)]


@pytest.mark.parametrize("hole", [21.0, 61.0, 300.0, 7200.0])
def test_a_class_before_and_after_a_hole_has_two_intervals_and_the_hole_is_in_neither(hole: float) -> None:
    case = load(CASES / "scheduler_slots_full.yaml")
    snapshots = spoilt(case.snapshots, 15, 15, hole)

    verdict = judge_recording(snapshots, "chat", Thresholds())

    assert verdict.diagnosis.bottleneck is Bottleneck.SCHEDULER
    assert verdict.timeline == (
        Interval(start=0.0, end=14.0, bottleneck=Bottleneck.SCHEDULER),
        Interval(start=15.0 + hole, end=29.0 + hole, bottleneck=Bottleneck.SCHEDULER),
    )


def test_a_few_scrapes_that_are_missing_are_no_hole() -> None:
    case = load(CASES / "scheduler_slots_full.yaml")

    verdict = judge_recording(spoilt(case.snapshots, 10, 15, 0.0), "chat", Thresholds())

    assert verdict.timeline == (Interval(start=0.0, end=29.0, bottleneck=Bottleneck.SCHEDULER),)


def test_after_a_hole_the_first_scrapes_are_not_explained_by_those_before() -> None:
    busy = load(CASES / "scheduler_slots_full.yaml").snapshots
    quiet = later(load(CASES / "idle_fresh.yaml").snapshots, 400.0)
    window = Window(900.0, (*busy, quiet[0]))

    first = diagnose(window, "chat", 400.0, Thresholds())
    verdict = judge_recording([*busy, *quiet], "chat", Thresholds())

    assert first.collecting
    assert verdict.timeline[-1] == Interval(start=400.0, end=quiet[-1].at, bottleneck=Bottleneck.IDLE)


def test_scrapes_that_are_minutes_apart_are_judged_all_the_same() -> None:
    case = load(CASES / "scheduler_slots_full.yaml")
    rare = [later([each], each.at * 119)[0] for each in case.snapshots]

    verdict = judge_recording(rare, "chat", Thresholds())

    assert verdict.timeline == (Interval(start=0.0, end=29 * 120.0, bottleneck=Bottleneck.SCHEDULER),)


@pytest.mark.parametrize(("age", "collecting"), [(59.0, False), (61.0, True)])
def test_the_last_few_scrapes_are_looked_at_until_they_are_stale(age: float, collecting: bool) -> None:
    busy = load(CASES / "scheduler_slots_full.yaml").snapshots[:3]
    newest = later([busy[-1]], age)[0]

    assert diagnose(Window(900.0, (*busy, newest)), "chat", newest.at, Thresholds()).collecting is collecting


@pytest.mark.parametrize(("age", "expected"), [(59.0, Bottleneck.SCHEDULER), (61.0, Bottleneck.NO_DATA)])
def test_a_scrape_of_a_minute_ago_is_no_data(age: float, expected: Bottleneck) -> None:
    snapshots = load(CASES / "scheduler_slots_full.yaml").snapshots
    window = Window(900.0, (*snapshots, replace(snapshots[-1], at=snapshots[-1].at + age)))

    assert diagnose(window, "chat", snapshots[-1].at + age, Thresholds()).bottleneck is expected


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("a-fresh", Bottleneck.IDLE),
        ("b-idle-after", Bottleneck.IDLE),
        ("c-moderate", Bottleneck.HEALTHY),
        ("d-kv-saturated", Bottleneck.KV_CAPACITY),
    ],
)
@pytest.mark.parametrize(("start", "end", "hole"), [(3, 3, 45.0), (2, 4, 0.0), (3, 4, 600.0)])
def test_a_real_capture_with_a_hole_keeps_its_class(
    folder: str, expected: Bottleneck, start: int, end: int, hole: float
) -> None:
    recording = read_recording(REAL / folder)
    snapshots = spoilt(recording.snapshots, start, end, hole)

    verdict = judge_recording(snapshots, recording.service, Thresholds())

    assert verdict.diagnosis.bottleneck is expected
    assert all(before.end <= after.start for before, after in pairwise(verdict.timeline))
    if hole:
        last = snapshots[start - 1].at - snapshots[0].at
        assert not any(each.start < last + hole / 2 < each.end for each in verdict.timeline)


def test_every_folder_of_the_real_captures_that_holds_scrapes_is_judged() -> None:
    """The other three hold answers, streams and logs."""
    folders = {path.parent.name for path in REAL.glob("*/*.prom")}

    assert folders == {"a-fresh", "b-idle-after", "c-moderate", "d-kv-saturated"}
    assert {path.name for path in REAL.iterdir() if path.is_dir()} == folders | {"errors", "sse", "startup-logs"}
