"""Turns a scene into the two bodies of /metrics."""

from dataclasses import dataclass, field

import structlog

from pinchpoint.outputs.catalog import CATALOG, Metric
from pinchpoint.outputs.exposition.lines import bucket_bound, headers, is_sound, label_text
from pinchpoint.outputs.exposition.process import process_metrics
from pinchpoint.outputs.published import Rendered
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Histogram

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Series:
    """One series as it was last written. ``prefixes`` is what stands before the value, on each line of a histogram."""

    prefixes: tuple[str, ...]
    value: float | Histogram
    lines: str


@dataclass(slots=True)
class _Family:
    """One row of the table with what it wrote last, by label values.

    Each render builds ``series`` anew out of the one before: it holds those of the last tick and can't grow beyond.
    """

    metric: Metric
    text_header: str
    openmetrics_header: str
    series: dict[tuple[object, ...], _Series] = field(default_factory=dict)


class Renderer:
    """Renders scenes, one at a time, in whichever thread it is called from (never the event loop's).

    Formatting costs most of the time, so a series whose value has not changed is written as before, and of any other
    the ``name{labels} `` is kept. A value that is unknown, not finite or impossible is left out, and so is a second
    sample of the same series.
    """

    def __init__(self, catalog: tuple[Metric, ...] = CATALOG) -> None:
        self._families = [_Family(metric, *headers(metric)) for metric in catalog]
        self._repeats = 0

    def render(self, scene: Scene) -> tuple[Rendered, Rendered]:
        """The scene in text 0.0.4 and in OpenMetrics 1.0, with the process's own metrics."""
        text: list[str] = []
        openmetrics: list[str] = []
        repeats = 0
        for family in self._families:
            lines, repeated = _lines(family, scene)
            repeats += repeated
            if lines:
                body = "".join(lines)
                text += (family.text_header, body)
                openmetrics += (family.openmetrics_header, body)
        self._tell(repeats)
        own_text, own_openmetrics = process_metrics()
        return _rendered("".join(text) + own_text), _rendered("".join(openmetrics) + own_openmetrics)

    def _tell(self, repeats: int) -> None:
        """Logs once when two things give the same series (two engines of one name), once when that is over."""
        if repeats and not self._repeats:
            log.warning(
                "Series with equal labels were left out", series=repeats, remedy="give each engine its own name"
            )
        if self._repeats and not repeats:
            log.info("No series has equal labels any more")
        self._repeats = repeats


def _rendered(body: str) -> Rendered:
    return Rendered(body.encode())


def _lines(family: _Family, scene: Scene) -> tuple[list[str], int]:
    """The family's sample lines, and how many samples were repeats of a series."""
    metric, before = family.metric, family.series
    now: dict[tuple[object, ...], _Series] = {}
    written: set[str] = set()
    lines: list[str] = []
    repeats = 0
    for labels, value in metric.read(scene):
        if value is None:
            continue
        key = (labels, value.bounds) if isinstance(value, Histogram) else labels
        series = before.get(key)
        if series is None or series.value is not value:
            if not is_sound(value, metric.kind):
                continue
            series = _written(series.prefixes if series else _prefixes(metric, labels, value), value)
        now[key] = series
        if series.prefixes[0] in written:
            repeats += 1
            continue
        written.add(series.prefixes[0])
        lines.append(series.lines)
    family.series = now
    return lines, repeats


def _written(prefixes: tuple[str, ...], value: float | Histogram) -> _Series:
    if isinstance(value, Histogram):
        return _Series(prefixes, value, _histogram_lines(prefixes, value))
    return _Series(prefixes, value, f"{prefixes[0]}{float(value)!r}\n")


def _prefixes(metric: Metric, labels: tuple[str, ...], value: float | Histogram) -> tuple[str, ...]:
    inner = label_text(metric.labels, labels)
    braces = f"{{{inner}}}" if inner else ""
    if not isinstance(value, Histogram):
        return (f"{metric.full_name}{braces} ",)
    comma = "," if inner else ""
    buckets = (f'{metric.full_name}_bucket{{{inner}{comma}le="{bucket_bound(bound)}"}} ' for bound in value.bounds)
    return f"{metric.full_name}_count{braces} ", f"{metric.full_name}_sum{braces} ", *buckets


def _histogram_lines(prefixes: tuple[str, ...], histogram: Histogram) -> str:
    count, total, *buckets = prefixes
    lines = [f"{prefix}{float(n)!r}\n" for prefix, n in zip(buckets, histogram.counts, strict=True)]
    if histogram.sum >= 0 and histogram.sum != float("inf"):  # OpenMetrics knows no negative sum, and no count alone
        lines.append(f"{count}{float(histogram.counts[-1])!r}\n")
        lines.append(f"{total}{float(histogram.sum)!r}\n")
    return "".join(lines)
