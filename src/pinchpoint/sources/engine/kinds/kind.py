"""What a kind of engine is: how it is told, where it answers, and how its exposition is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields

from pinchpoint.snapshot import EngineFacts, FrontendReading, Reason, ReplicaReading
from pinchpoint.sources.engine.exposition import Families

FIELDS = frozenset(each.name for each in fields(ReplicaReading)) - {"replica", "model"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What a kind made of one exposition: the parts of an ``EngineReading`` that the engine itself tells."""

    replicas: tuple[ReplicaReading, ...]
    frontend: FrontendReading = field(default_factory=FrontendReading)
    warnings: tuple[str, ...] = ()  # what was dropped, and what is known to be wrong in it
    unavailable: Mapping[str, Reason] = field(default_factory=dict)


def _no_facts(_: Families) -> EngineFacts:
    return EngineFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKind:
    """One kind. All functions take a folded exposition, are pure and raise nothing.

    ``marks`` are prefixes of metric names that tell the kind. ``says`` are the fields of a ``ReplicaReading`` that it
    may fill: the others it never exposes, whatever its flags. ``paths`` are where its exposition is, the likeliest
    first. ``facts`` are what it prints of its own configuration. ``remedy`` is what to do when its families are not
    there. ``lazy``: its families begin with the first request, so that an empty exposition is a server that waits for
    one.
    """

    name: str
    title: str
    marks: tuple[str, ...]
    says: frozenset[str]
    read: Callable[[Families, EngineFacts], Translation]  # with what the operator said
    facts: Callable[[Families], EngineFacts] = _no_facts
    paths: tuple[str, ...] = ("/metrics",)
    remedy: str = "check port and metrics_path"
    lazy: bool = False

    @property
    def not_exposed(self) -> frozenset[str]:
        return FIELDS - self.says

    def speaks_in(self, names: frozenset[str]) -> bool:
        """Whether any of the (folded) metric names is this kind's."""
        return any(name.startswith(self.marks) for name in names)
