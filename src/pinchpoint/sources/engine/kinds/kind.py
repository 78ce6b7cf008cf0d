"""What a kind of engine is: how it is told, where it answers, and how its exposition is read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields

from pinchpoint.snapshot import EngineFacts, FrontendReading, Reason, ReplicaReading
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.http import Answer

FIELDS = frozenset(each.name for each in fields(ReplicaReading)) - {"replica", "model"}
# What a verdict is made of: that a kind does not expose one of these is worth telling.
JUDGED_BY = frozenset(
    {
        "requests_running",
        "requests_waiting",
        "kv_cache_usage_ratio",
        "kv_cache_capacity_tokens",
        "preemptions_total",
        "prompt_tokens_total",
        "generation_tokens_total",
        "prefix_cache_hits_total",
        "ttft_seconds",
        "inter_token_seconds",
        "queue_seconds",
        "iteration_tokens",
    }
)

# Asks a path of the target within its limits of time; at most so many bytes, or as many as an exposition may have.
Get = Callable[[str, int | None], Awaitable[Answer]]


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
    one. ``passes_on``: what it exposes may be another engine's own, and then is of that kind. ``dies_by_health``: a 503
    of its /health means that the engine behind it is dead, and not that it is busy. ``tokens_at_end`` and
    ``running_lag_seconds`` as in ``EngineReading``. ``asked_every_seconds``: it bears no more scrapes than that.
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
    passes_on: bool = False
    dies_by_health: bool = False
    tokens_at_end: bool = False
    running_lag_seconds: float = 0.0
    asked_every_seconds: float = 1.0

    @property
    def not_exposed(self) -> frozenset[str]:
        """Fields that no release of it has."""
        return FIELDS - self.says

    def speaks_in(self, names: frozenset[str]) -> bool:
        """Whether any of the (folded) metric names is this kind's."""
        return any(name.startswith(self.marks) for name in names)
