"""The verdict of a whole recording: which class held for most of the time under load, and when each did."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from pinchpoint.diagnosis.course import Course, Interval, lengthened
from pinchpoint.diagnosis.decide import diagnose
from pinchpoint.diagnosis.hysteresis import settle, watched
from pinchpoint.diagnosis.judgement import ramp
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis, Settled
from pinchpoint.snapshot import EngineReading, Snapshot, Window

# Never the answer for a time under load, unless there is no other.
_NOT_UNDER_LOAD = (Bottleneck.IDLE, Bottleneck.NO_DATA, Bottleneck.SLEEPING)
_NO_RIVALS = (*_NOT_UNDER_LOAD, Bottleneck.UNKNOWN)
_RIVAL_SHARE = 0.25  # of the time of the answer, from which another class is its runner-up


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingVerdict:
    """``diagnosis`` is the most confident moment within the longest interval of the class that held most under load.

    The timeline is in seconds from the first scrape; where nobody scraped for longer than a verdict looks back, it has
    a gap.
    """

    diagnosis: Diagnosis
    timeline: Course


@dataclass(frozen=True, slots=True)
class _Step:
    settled: Settled
    seen: Diagnosis
    loaded: bool
    gap: bool  # nobody looked since the step before


def judge_recording(snapshots: Sequence[Snapshot], engine: str, thresholds: Thresholds) -> RecordingVerdict:
    """Judges each snapshot as the daemon would have, at its own time, and sums up.

    Only seconds with requests in the engine count; idle, no_data and sleeping are answers only when no other class held
    under load. Raises ``ValueError`` when there is no snapshot, or when they don't run forward.
    """
    if not snapshots:
        raise ValueError("a recording needs at least one scrape")
    steps = _steps(snapshots, engine, thresholds)
    timeline = _timeline(steps)
    seconds = _load_seconds(steps, timeline)
    answer = _answer(timeline, seconds)
    longest = max((i for i in timeline if i.bottleneck is answer), key=lambda interval: interval.end - interval.start)
    return RecordingVerdict(diagnosis=_summed_up(_within(steps, longest), seconds), timeline=timeline)


def _steps(snapshots: Sequence[Snapshot], engine: str, thresholds: Thresholds) -> list[_Step]:
    start = snapshots[0].at
    gaps = [after.at - before.at for before, after in pairwise(snapshots)] or [0.0]
    step = median(gaps)
    window = Window(max(thresholds.window_seconds, thresholds.probe_window_seconds, thresholds.min_scrapes * max(gaps)))
    steps: list[_Step] = []
    settled: Settled | None = None
    for snapshot in snapshots:
        window = window.append(snapshot)
        held = settled.diagnosis.bottleneck if settled else None
        gap = settled is not None and not watched(settled.diagnosis.at, snapshot.at, thresholds, step)
        seen = diagnose(window, engine, snapshot.at, thresholds, held=held)
        settled = settle(settled, seen, thresholds, step)
        steps.append(_Step(settled, replace(seen, at=seen.at - start), _loaded(snapshot.engine(engine)), gap))
    return steps


def _loaded(reading: EngineReading | None) -> bool:
    counts = [(r.requests_running, r.requests_waiting) for r in reading.replicas] if reading else []
    return any((number or 0) > 0 for pair in counts for number in pair)


def _timeline(steps: Sequence[_Step]) -> Course:
    """The course of the shown class from the first scrape on; what was seen once, before a gap or an end, has none."""
    course: Course = ()
    before: Settled | None = None
    for step in steps:
        course = lengthened(course, before, step.settled, gap=step.gap)
        before = step.settled
    origin = steps[0].settled.diagnosis.at
    moved = [replace(each, start=each.start - origin, end=each.end - origin) for each in course]
    return tuple(interval for interval in moved if interval.end > interval.start or len(moved) == 1)


def _load_seconds(steps: Sequence[_Step], timeline: Sequence[Interval]) -> dict[Bottleneck, float]:
    seconds: dict[Bottleneck, float] = {}
    for before, step in pairwise(steps):
        if step.loaded and not step.gap:
            for interval in timeline:
                overlap = min(step.seen.at, interval.end) - max(before.seen.at, interval.start)
                if overlap > 0:
                    seconds[interval.bottleneck] = seconds.get(interval.bottleneck, 0.0) + overlap
    return seconds


def _answer(timeline: Sequence[Interval], load_seconds: dict[Bottleneck, float]) -> Bottleneck:
    under_load = {b: seconds for b, seconds in load_seconds.items() if b not in _NOT_UNDER_LOAD}
    if under_load:
        return max(under_load, key=lambda bottleneck: under_load[bottleneck])
    overall: dict[Bottleneck, float] = {}
    for interval in timeline:
        overall[interval.bottleneck] = overall.get(interval.bottleneck, 0.0) + interval.end - interval.start
    return max(overall, key=lambda bottleneck: overall[bottleneck])


def _summed_up(moment: Diagnosis, seconds: dict[Bottleneck, float]) -> Diagnosis:
    """The moment as the answer for all of it: the class that held next longest is its runner-up, and where that held
    for nearly as long, it is hardly surer than its rival."""
    others = {b: held for b, held in seconds.items() if b is not moment.bottleneck and b not in _NO_RIVALS}
    rival = max(others, key=lambda bottleneck: others[bottleneck], default=None)
    held = seconds.get(moment.bottleneck, 0.0)
    if rival is None or others[rival] < _RIVAL_SHARE * held:
        return moment
    sure = 0.7 + 0.3 * ramp(1.0 - others[rival] / held, 0.0, 1.0 - _RIVAL_SHARE)
    return replace(moment, runner_up=rival, confidence_ratio=round(sure * moment.confidence_ratio, 4))


def _within(steps: Sequence[_Step], interval: Interval) -> Diagnosis:
    """The most confident diagnosis of the interval's class within it, of equals the one nearest to its middle.

    The shown diagnosis where the class was only held.
    """
    inside = [step for step in steps if interval.start <= step.seen.at <= interval.end]
    seen = [step.seen for step in inside if step.seen.bottleneck is interval.bottleneck]
    shown = [s.settled.diagnosis for s in inside if s.settled.diagnosis.bottleneck is interval.bottleneck]
    middle = (interval.start + interval.end) / 2
    return max(seen or shown, key=lambda each: (round(each.confidence_ratio, 1), -abs(each.at - middle)))
