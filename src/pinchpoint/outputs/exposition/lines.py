"""The parts of an exposition line, as Prometheus' text format 0.0.4 and OpenMetrics 1.0 both want them."""

import math
from itertools import pairwise

from prometheus_client.utils import floatToGoString

from pinchpoint.outputs.catalog import Kind, Metric
from pinchpoint.outputs.label import label_value
from pinchpoint.snapshot import Histogram


def label_text(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    """``a="1",b="2"``; raises ``ValueError`` when a row gives more or fewer values than it has labels."""
    return ",".join(f'{name}="{label_value(value)}"' for name, value in zip(names, values, strict=True))


def headers(metric: Metric) -> tuple[str, str]:
    """HELP and TYPE of a family, in text 0.0.4 (which has no info type) and in OpenMetrics."""
    kind = Kind.GAUGE if metric.kind is Kind.INFO else metric.kind
    return (
        f"# HELP {metric.full_name} {metric.help}\n# TYPE {metric.full_name} {kind}\n",
        f"# HELP {metric.family} {metric.help}\n# TYPE {metric.family} {metric.kind}\n",
    )


def bucket_bound(bound: float) -> str:
    """A bucket's ``le`` as the Python client writes it: ``1.0`` and never ``1``, so that a series keeps its name."""
    return str(floatToGoString(bound))  # type: ignore[no-untyped-call]


def is_sound(value: float | Histogram | None, kind: Kind) -> bool:
    """Whether a value may be written: known, finite, never negative where it counts, buckets in order up to +Inf."""
    if value is None:
        return False
    if not isinstance(value, Histogram):
        return kind is not Kind.HISTOGRAM and math.isfinite(value) and (value >= 0 or kind is Kind.GAUGE)
    return (
        kind is Kind.HISTOGRAM
        and len(value.bounds) == len(value.counts) > 0
        and value.bounds[-1] == math.inf
        and all(low < high for low, high in pairwise(value.bounds))
        and value.counts[0] >= 0
        and all(low <= high for low, high in pairwise(value.counts))
        and math.isfinite(value.counts[-1])
    )
