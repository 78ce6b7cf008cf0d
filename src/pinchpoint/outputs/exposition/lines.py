"""The parts of an exposition line, as Prometheus' text format 0.0.4 and OpenMetrics 1.0 both want them."""

import math
from functools import lru_cache
from operator import le, lt

from prometheus_client.utils import floatToGoString

from pinchpoint.outputs.catalog import Kind, Metric
from pinchpoint.outputs.label import label_value
from pinchpoint.snapshot import Histogram

_INNER = "\0"  # in the place of label texts, in which it can't be
_LABELS = f"{{{_INNER}}}"


def label_text(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """``a="1",b="2"``; raises ``ValueError`` when a row gives more or fewer values than it has labels."""
    return ",".join(f'{name}="{label_value(value)}"' for name, value in zip(names, values, strict=True))


def headers(metric: Metric) -> tuple[bytes, bytes]:
    """HELP and TYPE of a family, in text 0.0.4 (which has no info type) and in OpenMetrics."""
    kind = Kind.GAUGE if metric.kind is Kind.INFO else metric.kind
    return (
        f"# HELP {metric.full_name} {metric.help}\n# TYPE {metric.full_name} {kind}\n".encode(),
        f"# HELP {metric.family} {metric.help}\n# TYPE {metric.family} {metric.kind}\n".encode(),
    )


def bucket_bound(bound: float) -> str:
    """A bucket's ``le`` as the Python client writes it: ``1.0`` and never ``1``, so that a series keeps its name."""
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def shape_of(labels: tuple[str, ...], value: float | Histogram) -> tuple[object, ...]:
    """What two samples share whose lines differ in their numbers alone."""
    return (labels, value.bounds, has_sum(value)) if isinstance(value, Histogram) else labels


def numbers_of(value: float | Histogram) -> tuple[float, ...]:
    """The numbers of a sound sample's lines, in the order of ``template``'s."""
    if not isinstance(value, Histogram):
        return (float(value),)
    told = (*value.counts, value.counts[-1], value.sum) if has_sum(value) else value.counts
    return tuple(map(float, told))


def template(metric: Metric, inner: str, value: float | Histogram) -> str:
    """The lines of a sound sample of the series ``inner`` (its ``label_text``), to be filled with ``%``."""
    if not isinstance(value, Histogram):
        lines = _LABELS if inner else ""
        lines = f"{metric.full_name}{lines} %r\n"
    else:
        lines = _histogram_lines(metric.full_name, value.bounds, has_sum(value), bool(inner))
    return lines.replace(_INNER, inner.replace("%", "%%"))


@lru_cache(1024)
def _histogram_lines(name: str, bounds: tuple[float, ...], has_sum: bool, labelled: bool) -> str:
    """The same for all engines, but for their labels."""
    braces, comma = (_LABELS, _INNER + ",") if labelled else ("", "")
    heads = [f'{name}_bucket{{{comma}le="{bucket_bound(bound)}"}}' for bound in bounds]
    if has_sum:
        heads += [f"{name}_count{braces}", f"{name}_sum{braces}"]
    return "".join(f"{head} %r\n" for head in heads)


def has_sum(histogram: Histogram) -> bool:
    """OpenMetrics knows no negative sum, and no count alone."""
    return 0 <= histogram.sum < math.inf


def is_sound(value: float | Histogram, kind: Kind) -> bool:
    """Whether a value may be written: finite, never negative where it counts, buckets in order up to +Inf."""
    if not isinstance(value, Histogram):
        return -math.inf < value < math.inf and kind is not Kind.HISTOGRAM and (value >= 0 or kind is Kind.GAUGE)
    return (
        kind is Kind.HISTOGRAM
        and len(value.bounds) == len(value.counts) > 0
        and _are_bounds(value.bounds)
        and value.counts[0] >= 0
        and all(map(le, value.counts, value.counts[1:]))
        and math.isfinite(value.counts[-1])
    )


@lru_cache(256)
def _are_bounds(bounds: tuple[float, ...]) -> bool:
    return bounds[-1] == math.inf and all(map(lt, bounds, bounds[1:]))
