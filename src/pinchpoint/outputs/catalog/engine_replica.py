"""How a field of a replica's reading becomes a row of the table: under its own name, labelled with its replica."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Each, Kind, Metric, Sample
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import EngineReading

# ``model`` is empty while the engine does not say it: the label set of a series never changes.
REPLICA = ("engine", "replica", "model")


def engines(scene: Scene) -> Iterable[tuple[str, EngineReading]]:
    """Every engine that was read: its reading stays the same from scrape to scrape."""
    return ((e.engine, e) for e in scene.snapshot.engines)


def plain(field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number or histogram of each replica: the reading's field of the same name."""

    def of(e: EngineReading) -> Iterable[Sample]:
        return (((e.engine, r.replica, r.model or ""), getattr(r, field)) for r in e.replicas)

    return Metric(name=f"engine_{field}", kind=kind, help=text, labels=REPLICA, read=Each(engines, of))


def by(label: str, field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each replica by one more label: the reading's mapping of the same name."""

    def of(e: EngineReading) -> Iterable[Sample]:
        for r in e.replicas:
            yield from (((e.engine, r.replica, r.model or "", key), n) for key, n in getattr(r, field).items())

    return Metric(name=f"engine_{field}", kind=kind, help=text, labels=(*REPLICA, label), read=Each(engines, of))
