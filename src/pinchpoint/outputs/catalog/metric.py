"""What a row of the metric table is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Histogram

PREFIX = "pinchpoint_"


class Kind(StrEnum):
    """A metric type of OpenMetrics 1.0."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


TYPE_SUFFIX = {Kind.COUNTER: "_total", Kind.INFO: "_info"}

# The label values in the order of ``Metric.labels``, and the value; ``None`` (not known) writes nothing.
Sample = tuple[tuple[str, ...], float | Histogram | None]
Read = Callable[[Scene], Iterable[Sample]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Each(Generic[T]):
    """A ``Read`` whose samples come thing by thing (engine by engine): what a thing gives depends on it alone.

    ``things`` gives each with its name, the value of the first label. Whoever keeps what an equal thing gave the time
    before need not ask for its ``samples`` again. Rows of the same ``things`` are kept together.
    """

    things: Callable[[Scene], Iterable[tuple[str, T]]]
    samples: Callable[[T], Iterable[Sample]]

    def __call__(self, scene: Scene) -> Iterable[Sample]:
        for _, thing in self.things(scene):
            yield from self.samples(thing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric of /metrics: its name without ``pinchpoint_``, and how to take its samples from a scene.

    A counter's name ends in ``_total`` and an info's in ``_info``, as in PromQL. ``read`` is pure; label values are
    plain text (they may come from outside: whoever writes them escapes them).
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...]
    read: Read

    def __post_init__(self) -> None:
        suffix = TYPE_SUFFIX.get(self.kind, "")
        if not self.name.endswith(suffix):
            raise ValueError(f"{self.kind} {self.name} must end in {suffix}")

    @property
    def full_name(self) -> str:
        """The name that PromQL sees; of a histogram, that of the family."""
        return PREFIX + self.name

    @property
    def family(self) -> str:
        """OpenMetrics' name of the family: without the type's suffix."""
        return self.full_name.removesuffix(TYPE_SUFFIX.get(self.kind, ""))

    @property
    def series_names(self) -> tuple[str, ...]:
        """Every name that PromQL can ask for."""
        if self.kind is Kind.HISTOGRAM:
            return tuple(self.full_name + part for part in ("_bucket", "_sum", "_count"))
        return (self.full_name,)


def gauge(name: str, labels: tuple[str, ...], read: Read, text: str) -> Metric:
    """A row for a number that goes up and down."""
    return Metric(name=name, kind=Kind.GAUGE, help=text, labels=labels, read=read)


def counter(name: str, labels: tuple[str, ...], read: Read, text: str) -> Metric:
    """A row for a number that only grows; ``name`` ends in ``_total``."""
    return Metric(name=name, kind=Kind.COUNTER, help=text, labels=labels, read=read)


def info(name: str, labels: tuple[str, ...], read: Read, text: str) -> Metric:
    """A row for facts in labels, always 1; ``name`` ends in ``_info``."""
    return Metric(name=name, kind=Kind.INFO, help=text, labels=labels, read=read)
