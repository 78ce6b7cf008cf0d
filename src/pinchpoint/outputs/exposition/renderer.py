"""Turns a scene into the two bodies of /metrics."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import structlog

from pinchpoint.outputs.catalog import CATALOG, Metric
from pinchpoint.outputs.exposition.blocks import Block, groups_of
from pinchpoint.outputs.exposition.lines import headers, is_sound, label_text, numbers_of, shape_of, template
from pinchpoint.outputs.exposition.process import process_metrics
from pinchpoint.outputs.published import Rendered
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Histogram

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Series:
    """One series as it was last written: ``inner`` is its label text, ``template`` its lines but for the numbers."""

    inner: str
    template: str
    value: float | Histogram
    lines: str


@dataclass(slots=True)
class _Family:
    """One row of the table with what it wrote last, by label values.

    Each render builds ``series`` anew out of the one before: it holds those of the last tick and can't grow beyond.
    """

    metric: Metric
    text_header: bytes
    openmetrics_header: bytes
    series: dict[tuple[object, ...], _Series] = field(default_factory=dict)


class Renderer:
    """Renders scenes, one at a time, in whichever thread it is called from (never the event loop's).

    Formatting costs most of the time, so what has not changed is written as before: a thing with all its lines
    (``blocks``), else a series; and of any other all but the numbers is kept. A value that is unknown, not finite or
    impossible is left out, and so is a second sample of the same series.
    """

    def __init__(self, catalog: tuple[Metric, ...] = CATALOG) -> None:
        self._families = [_Family(metric, *headers(metric)) for metric in catalog]
        self._groups = groups_of(catalog)
        self._repeats = 0

    def render(self, scene: Scene) -> tuple[Rendered, Rendered]:
        """The scene in text 0.0.4 and in OpenMetrics 1.0, with the process's own metrics."""
        columns: dict[str, Sequence[Block]] = {}
        for group in self._groups:
            told = group.columns(scene)
            if told is not None:
                columns |= {metric.name: column for metric, column in zip(group.metrics, told, strict=True)}
        repeats = 0
        parts: list[tuple[_Family, Sequence[Block]]] = []
        for family in self._families:
            lines = columns.get(family.metric.name)
            if lines is None:
                lines, repeated = _lines(family, scene)
                repeats += repeated
            else:
                family.series.clear()
            if any(lines):
                parts.append((family, lines))
        self._tell(repeats)
        own_text, own_openmetrics = map(str.encode, process_metrics())

        def text() -> Iterator[bytes]:
            yield from (piece for family, lines in parts for piece in (family.text_header, *lines))
            yield own_text

        def openmetrics() -> Iterator[bytes]:
            yield from (piece for family, lines in parts for piece in (family.openmetrics_header, *lines))
            yield own_openmetrics

        return Rendered(text), Rendered(openmetrics)

    def _tell(self, repeats: int) -> None:
        """Logs once when two things give the same series (two engines of one name), once when that is over."""
        if repeats and not self._repeats:
            log.warning(
                "Series with equal labels were left out", series=repeats, remedy="give each engine its own name"
            )
        if self._repeats and not repeats:
            log.info("No series has equal labels any more")
        self._repeats = repeats


def _lines(family: _Family, scene: Scene) -> tuple[Sequence[Block], int]:
    """The family's lines, and how many samples were repeats of a series."""
    metric, before = family.metric, family.series
    now: dict[tuple[object, ...], _Series] = {}
    written: set[str] = set()
    lines: list[str] = []
    repeats = 0
    for labels, value in metric.read(scene):
        if value is None:
            continue
        key = shape_of(labels, value)
        series = before.get(key)
        if series is None or series.value is not value:
            if not is_sound(value, metric.kind):
                continue
            series = _written(metric, labels, value, series)
        now[key] = series
        if series.inner in written:
            repeats += 1
            continue
        written.add(series.inner)
        lines.append(series.lines)
    family.series = now
    return ["".join(lines).encode()], repeats


def _written(metric: Metric, labels: tuple[str, ...], value: float | Histogram, before: _Series | None) -> _Series:
    inner = before.inner if before else label_text(metric.labels, labels)
    lines = before.template if before else template(metric, inner, value)
    return _Series(inner, lines, value, lines % numbers_of(value))
