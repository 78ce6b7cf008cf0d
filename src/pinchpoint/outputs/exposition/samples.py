"""A scene as samples, without the way over text: for whoever evaluates expressions in process."""

from collections.abc import Collection, Iterator

from pinchpoint.outputs.catalog import CATALOG, Metric
from pinchpoint.outputs.exposition.lines import bucket_bound, has_sum, is_sound
from pinchpoint.outputs.label import shown
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Histogram

# Series name, names of the labels (always the same for a name), their values, number; as ``alerting.Series`` takes it.
SeriesSample = tuple[str, tuple[str, ...], tuple[str, ...], float]


def samples_of(scene: Scene, names: Collection[str], catalog: tuple[Metric, ...] = CATALOG) -> Iterator[SeriesSample]:
    """What a scrape of the scene would find of the series of those names, in the catalog's order.

    Two samples of one series may be among them: the first is the one that /metrics has.
    """
    for metric in catalog:
        if any(name in names for name in metric.series_names):
            yield from _of_metric(metric, scene, names)


def _of_metric(metric: Metric, scene: Scene, names: Collection[str]) -> Iterator[SeriesSample]:
    name, with_le = metric.full_name, (*metric.labels, "le")
    for labels, value in metric.read(scene):
        if value is None or not is_sound(value, metric.kind):
            continue
        values = tuple(map(shown, labels))
        if not isinstance(value, Histogram):
            yield name, metric.labels, values, float(value)
            continue
        if f"{name}_bucket" in names:
            for bound, count in zip(value.bounds, value.counts, strict=True):
                yield f"{name}_bucket", with_le, (*values, bucket_bound(bound)), float(count)
        if has_sum(value):
            if f"{name}_count" in names:
                yield f"{name}_count", metric.labels, values, float(value.counts[-1])
            if f"{name}_sum" in names:
                yield f"{name}_sum", metric.labels, values, float(value.sum)
