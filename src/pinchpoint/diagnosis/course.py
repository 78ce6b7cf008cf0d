"""The course of the classes of one engine: which one was shown when, for as long as somebody looked."""

from dataclasses import dataclass, replace

from pinchpoint.diagnosis.verdict import Bottleneck, Settled


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """``bottleneck`` held from ``start`` to ``end``, in seconds of one clock."""

    start: float
    end: float
    bottleneck: Bottleneck


Course = tuple[Interval, ...]


def lengthened(course: Course, before: Settled | None, shown: Settled, *, gap: bool = False) -> Course:
    """The course up to the newest verdict; ``before`` is what was shown at the one before.

    A new class begins when it was first seen, not when it was believed, and what follows the first few scrapes was so
    from their first. Across a ``gap`` nobody looked, so nothing held: an interval ends before it and one begins after.
    """
    now, bottleneck = shown.diagnosis.at, shown.diagnosis.bottleneck
    if not course or before is None or gap:
        return (*course, Interval(start=now, end=now, bottleneck=bottleneck))
    earlier, last = course[:-1], course[-1]
    if last.bottleneck is bottleneck:
        return (*earlier, replace(last, end=now))
    start = last.start if before.diagnosis.collecting else min(now, max(shown.since, last.start))
    if start > last.start:
        earlier = (*earlier, replace(last, end=start))
    return _joined(earlier, Interval(start=start, end=now, bottleneck=bottleneck))


def _joined(earlier: Course, newest: Interval) -> Course:
    """As one with the interval before where nothing lies between."""
    if earlier and earlier[-1].bottleneck is newest.bottleneck and earlier[-1].end == newest.start:
        return (*earlier[:-1], replace(newest, start=earlier[-1].start))
    return (*earlier, newest)


def recent(course: Course, since: float, most: int) -> Course:
    """What reaches beyond ``since``, ``most`` intervals at most: the newest."""
    if not course or (len(course) <= most and course[0].end >= since):
        return course
    return tuple(each for each in course[-most:] if each.end >= since)
