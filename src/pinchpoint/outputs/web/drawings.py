"""Small SVG drawings. Sizes are attributes, because the content security policy forbids inline styles."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from pinchpoint.outputs.web.markup import Html, el, join
from pinchpoint.outputs.web.units import ratio
from pinchpoint.outputs.web.words import Severity

_HEIGHT = 28.0

# One shape each, so that the severity reads without its colour. 24 x 24, stroked with the current colour.
_SHAPES = {
    Severity.CRITICAL: "M8 2.8h8L21.2 8v8L16 21.2H8L2.8 16V8zM12 7.5v5.5M12 16.4v.1",  # octagon with a mark
    Severity.PINCHED: "M4 3.5 10 12 4 20.5M20 3.5 14 12 20 20.5M12 11.9v.2",  # a pinched pipe
    Severity.UNSURE: "M9 9.2a3 3 0 1 1 4.4 2.7c-.9.5-1.4 1-1.4 2.1M12 17.3v.1M12 2.8a9.2 9.2 0 1 0 .1 0z",  # a question
    Severity.FINE: "M7.8 12.4l2.9 2.9 5.6-6M12 2.8a9.2 9.2 0 1 0 .1 0z",  # a tick in a ring
    Severity.QUIET: "M9.5 9v6M14.5 9v6M12 2.8a9.2 9.2 0 1 0 .1 0z",  # a pause
}


def icon(severity: Severity) -> Html:
    return el("svg", el("path", d=_SHAPES[severity]), class_="icon", viewBox="0 0 24 24", aria_hidden="true")


def bar(value: float | None, label: str, mark: float | None = None, warn: bool = False) -> Html:
    """A horizontal gauge of a ratio; ``mark`` draws the line from which it is too much. Unknown is an empty track."""
    known = value is not None
    full = min(max(value or 0.0, 0.0), 1.0)
    return el(
        "svg",
        el("rect", class_="fill", width=f"{full * 100:.1f}%", height="100%", rx=3) if known else None,
        el("line", class_="mark", x1=f"{mark:.0%}", x2=f"{mark:.0%}", y1=0, y2="100%") if mark is not None else None,
        class_="bar warn" if warn else "bar",
        role="meter" if known else "img",
        aria_label=label if known else f"{label}: unknown",
        aria_valuemin=0 if known else None,
        aria_valuemax=100 if known else None,
        aria_valuenow=f"{full * 100:.0f}" if known else None,
        aria_valuetext=ratio(value) if known else None,
    )


def spark(label: str, *lines: tuple[str, Sequence[float | None]], top: float, mark: float | None = None) -> Html:
    """Lines over time, oldest left, from 0 to ``top``, each with a CSS class. A gap in values is a gap in the line."""
    width = max(len(values) for _, values in lines) - 1
    return el(
        "svg",
        el("line", class_="mark", x1=0, x2=width, y1=_y(mark, top), y2=_y(mark, top)) if mark is not None else None,
        [_line(css, values, top) for css, values in lines],
        class_="spark",
        viewBox=f"0 0 {width} {_HEIGHT:.0f}",
        preserveAspectRatio="none",
        role="img",
        aria_label=label,
    )


def _line(css: str, values: Sequence[float | None], top: float) -> Html:
    runs = [list(run) for known, run in groupby(enumerate(values), lambda p: p[1] is not None) if known]
    return join(_run(css, [(x, _y(value, top)) for x, value in run if value is not None]) for run in runs)


def _run(css: str, points: list[tuple[int, str]]) -> Html:
    first, last = points[0][0], points[-1][0]
    if first == last:  # one value alone: a short dash, or it would not be seen
        points = [(max(0, first - 1), points[0][1]), *points]
        first = points[0][0]
    area = Html(f"{first},{_HEIGHT:.0f} {_text(points)} {last},{_HEIGHT:.0f}")
    return join(el("polygon", class_=css, points=area), el("polyline", class_=css, points=_text(points)))


def _text(points: Iterable[tuple[int, str]]) -> Html:
    return Html(" ".join(f"{x},{y}" for x, y in points))


def _y(value: float, top: float) -> str:
    # One unit of air above and below keeps the stroke inside the picture.
    return f"{_HEIGHT - 1 - min(max(value / top, 0.0), 1.0) * (_HEIGHT - 2):.1f}"
