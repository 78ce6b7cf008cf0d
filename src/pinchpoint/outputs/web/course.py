"""The classes of one engine over the last hours, as one strip with its legend."""

from datetime import UTC, datetime
from itertools import pairwise

from pinchpoint.diagnosis.course import Course, Interval
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.class_words import CLASS_WORDS
from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.markup import Html, el
from pinchpoint.outputs.web.words import SEVERITIES, Severity, within

CELLS = 240  # of a strip: more than a phone has pixels for
SPANS = tuple(60.0 * minutes for minutes in (5, 15, 30, 60, 120, 180, 360))  # few, so that the axis seldom changes
_UNWATCHED_SHARE = 0.02  # of the strip, from which a gap is in the legend: some seconds of a restart are not
_RANK = {severity: rank for rank, severity in enumerate(reversed(Severity))}  # what is worst is painted last


def strip(course: Course, now: float, unix_offset: float) -> Html | None:
    """Nothing where nothing is known yet. A gap in the strip is a time when nobody looked.

    A cell shows the worst of what was in it, so that no short trouble is lost; the legend has the seconds as they were.
    """
    if not course:
        return None
    span = next((span for span in SPANS if now - course[0].start <= span), SPANS[-1])
    shown = [each for each in course if each.end >= now - span]
    seconds = _seconds(shown, now - span)
    last = units.duration(span)
    return el(
        "section",
        el(
            "svg",
            [_run(run, unix_offset) for run in _runs(shown, now - span, span)],
            class_="strip",
            role="img",
            aria_label=f"Classes over the last {last}: {', '.join(f'{_words(b)} {t}' for b, t in seconds.items())}",
        ),
        el("p", el("span", f"{last} ago"), el("span", "now"), class_="axis"),
        el(
            "p",
            [_key(bottleneck, told) for bottleneck, told in seconds.items()],
            _unwatched(shown, span),
            class_="legend",
        ),
        class_="course",
    )


def _seconds(shown: list[Interval], since: float) -> dict[Bottleneck, str]:
    """How long each class held, the longest first."""
    seconds: dict[Bottleneck, float] = {}
    for each in shown:
        seconds[each.bottleneck] = seconds.get(each.bottleneck, 0.0) + each.end - max(each.start, since)
    return {name: units.duration(held) for name, held in sorted(seconds.items(), key=lambda pair: -pair[1])}


def _runs(shown: list[Interval], since: float, span: float) -> list[list[tuple[int, Interval]]]:
    """Neighbouring cells of one class, each with the interval that it shows."""
    cells: dict[int, Interval] = {}
    for each in sorted(shown, key=lambda interval: _RANK[SEVERITIES[interval.bottleneck]]):
        first = min(CELLS - 1, max(0, int((each.start - since) / span * CELLS)))
        end = min(CELLS, max(first + 1, round((each.end - since) / span * CELLS)))
        cells.update(dict.fromkeys(range(first, end), each))
    runs: list[list[tuple[int, Interval]]] = []
    for place, each in sorted(cells.items(), key=lambda cell: cell[0]):
        before = runs[-1][-1] if runs else None
        if before and before[0] == place - 1 and before[1].bottleneck is each.bottleneck:
            runs[-1].append((place, each))
        else:
            runs.append([(place, each)])
    return runs


def _run(run: list[tuple[int, Interval]], unix_offset: float) -> Html:
    (first, begun), (last, ended) = run[0], run[-1]
    start, end = (datetime.fromtimestamp(at + unix_offset, UTC) for at in (begun.start, ended.end))
    held = f"{start:%Y-%m-%d %H:%M:%S} to {end:%H:%M:%S} UTC"
    return el(
        "rect",
        el("title", f"{CLASS_WORDS[begun.bottleneck]}, {held} ({units.duration(ended.end - begun.start)})"),
        class_=f"c-{begun.bottleneck.value}",
        x=f"{100 * first / CELLS:.2f}%",
        width=f"{100 * (last - first + 1) / CELLS:.2f}%",
        height="100%",
    )


def _key(bottleneck: Bottleneck, told: str) -> Html:
    return el("span", CLASS_WORDS[bottleneck], " ", el("b", told), class_=f"key c-{bottleneck.value}")


def _unwatched(shown: list[Interval], span: float) -> Html | None:
    seconds = sum(after.start - before.end for before, after in pairwise(shown))
    if seconds < _UNWATCHED_SHARE * span:
        return None
    return el("span", "Nobody looked", " ", el("b", units.duration(seconds)), class_="key unwatched")


def _words(bottleneck: Bottleneck) -> str:
    return within(CLASS_WORDS[bottleneck])
