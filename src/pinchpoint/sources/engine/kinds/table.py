"""How an engine that is told by a table is read: its terms, and what takes arithmetic between several names."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.snapshot import EngineFacts, Reason, ReplicaReading
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import JUDGED_BY, Translation
from pinchpoint.sources.engine.vocabulary import MAX_VALUE, Layout, Term, Value, Warn, read_fields

MAX_REPLICAS = 1024
MAX_WARNINGS = 16

Derived = Mapping[str, Mapping[str, Value]]  # by replica: fields
WHOLE = "all"  # the replica of what is said of the server as a whole, beside what is said of each


def _nothing(_families: Families, _warn: Warn) -> Derived:
    return {}


ONE_REPLICA = Layout(lambda _labels: "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One engine's vocabulary. ``derived`` fills fields that no single name holds, where no term has filled them.

    Where the layout names no replica (``""``), it is the only one, or else the server as a whole.
    """

    terms: Mapping[str, Term]
    layout: Layout = ONE_REPLICA
    derived: Callable[[Families, Warn], Derived] = _nothing
    derives: frozenset[str] = frozenset()
    prefix: str = ""  # of the names that carry a model label

    @property
    def says(self) -> frozenset[str]:
        return self.derives | self.terms.keys()

    def read(self, families: Families, _said: EngineFacts) -> Translation:
        """Every replica, in natural order, and warnings on what was dropped. One of which nothing is known if none."""
        found = read_fields(self.terms, families, self.layout)
        fields: dict[str, dict[str, Any]] = found.by_replica
        for replica, more in self.derived(families, found.warn).items():
            own = fields.setdefault(replica, {})
            own.update({name: value for name, value in more.items() if name not in own})
        models = self._models(families)
        _place_whole(fields, models)
        if len(fields) > MAX_REPLICAS:
            found.warn(f"{len(fields)} replicas, only {MAX_REPLICAS} are read")
        replicas = tuple(
            ReplicaReading(replica=name, model=models.get(name), **fields[name])
            for name in sorted(fields, key=natural)[:MAX_REPLICAS]
        )
        return Translation(
            replicas=replicas or (ReplicaReading(),),
            warnings=tuple(found.warnings)[:MAX_WARNINGS],
            unavailable=dict.fromkeys(sorted(JUDGED_BY - self.says), Reason.NOT_EXPOSED) | found.unavailable,
        )

    def _models(self, families: Families) -> dict[str, str]:
        models: dict[str, str] = {}
        for name, samples in families.samples.items():
            for sample in samples if name.startswith(self.prefix) else ():
                model = sample.labels.get("model_name") or sample.labels.get("model") or sample.labels.get("name")
                if model and model != "undefined":
                    models.setdefault(self.layout.replica_of(sample.labels), model)
        return models


def _place_whole(fields: dict[str, dict[str, Any]], models: dict[str, str]) -> None:
    whole, model = fields.pop("", None), models.pop("", None)
    if whole:
        one = next(iter(fields)) if len(fields) == 1 else WHOLE if fields else "0"
        fields[one] = whole | fields.get(one, {})
    for replica in fields if model is not None else ():
        models.setdefault(replica, str(model))


def natural(replica: str) -> tuple[int, str]:
    """Sort key that puts rank 2 before rank 10."""
    return (len(replica) if replica.isdecimal() else 1_000, replica)


def gauges(families: Families, layout: Layout, name: str, **where: str) -> dict[str, float]:
    """The largest value of ``name`` per replica among the samples with these labels: the one that counts of copies."""
    found: dict[str, float] = {}
    for sample in families.samples.get(name, ()):
        if 0 <= sample.value <= MAX_VALUE and all(sample.labels.get(key) == value for key, value in where.items()):
            replica = layout.replica_of(sample.labels)
            found[replica] = max(sample.value, found.get(replica, 0.0))
    return found
