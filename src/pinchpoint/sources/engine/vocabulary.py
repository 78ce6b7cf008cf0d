"""How a vocabulary table is read: a normalised field from every upstream name it has ever had.

A table maps a field of ``ReplicaReading`` to a ``Term``; a new name upstream is one more string in one row. Values
of one replica that differ in other labels are added up (ratios: the largest). Is not a table itself.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import lru_cache

from pinchpoint.snapshot import Histogram, Reason
from pinchpoint.sources.engine.exposition import Families, Sample

MAX_VALUE = 1e18  # a counter of bytes that ran for years; what is above it can't be, nor be added up
MAX_LABEL_VALUES = 32  # of one labelled field: these become label values of ours

Value = float | Mapping[str, float] | Histogram
Warn = Callable[[str], None]


class Kind(Enum):
    GAUGE = auto()
    RATIO = auto()  # a gauge that is refused outside 0..1
    COUNTER = auto()  # exposed with or without _total
    HISTOGRAM = auto()


@dataclass(frozen=True, slots=True)
class Term:
    """Where one field comes from: the first of ``names`` that a replica has.

    ``by``: the field is a mapping by this label. ``where``: only samples with this label value count. ``otherwise``
    is for replicas that have none of this. ``unset``: the value with which the engine says that it has none.
    """

    kind: Kind
    names: tuple[str, ...]
    by: str | None = None
    where: tuple[str, str] | None = None
    otherwise: "Term | None" = None
    unset: float | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """Whose a sample is: ``replica_of`` tells from its labels.

    ``copies`` are labels by which one value is said again (tensor-parallel ranks, an ensemble beside its model): of
    samples that differ in nothing else the largest counts, and they are not added up. ``split`` is a label that splits
    a value whose total is said beside its parts, with the label empty.
    """

    replica_of: Callable[[Mapping[str, str]], str]
    copies: frozenset[str] = frozenset()
    split: str | None = None


@dataclass(slots=True)
class Fields:
    """What ``read_fields`` found, for the kind to complete before it becomes readings."""

    by_replica: dict[str, dict[str, Value]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)  # in order, each once
    unavailable: dict[str, Reason] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        self.warnings.setdefault(text)


def replica_of(labels: Mapping[str, str]) -> str:
    """The replica of a sample: Ray Serve's replica and vLLM's engine core, ``"0"`` where neither is said."""
    served, core = labels.get("ReplicaId"), labels.get("engine")
    return (core if served is None else served if core is None else f"{served}/{core}") or "0"


VLLM_LAYOUT = Layout(replica_of)


def read_fields(vocabulary: Mapping[str, Term], families: Families, layout: Layout = VLLM_LAYOUT) -> Fields:
    """Every field of every replica that has it. One whose values make no sense is ``INVALID``, with a warning."""
    found = Fields()
    for name, term in vocabulary.items():
        before = len(found.warnings)
        for replica, value in read_term(term, families, found.warn, layout).items():
            found.by_replica.setdefault(replica, {})[name] = value
        if len(found.warnings) > before:
            found.unavailable[name] = Reason.INVALID
    return found


def read_term(term: Term, families: Families, warn: Warn, layout: Layout = VLLM_LAYOUT) -> dict[str, Value]:
    """One field of every replica that has it. What is out of range is dropped, and ``warn`` is told."""
    found: dict[str, Value] = {}
    for name in term.names:
        for replica, value in _read_name(term, name, families, warn, layout).items():
            found.setdefault(replica, value)
    if term.otherwise is not None:
        found = {**read_term(term.otherwise, families, warn, layout), **found}
    return found


def _read_name(term: Term, name: str, families: Families, warn: Warn, layout: Layout) -> dict[str, Value]:
    if term.kind is Kind.HISTOGRAM:
        return _histograms(term, name, families, warn, layout)
    samples = families.samples.get(name, ())
    if term.kind is Kind.COUNTER:
        samples = families.samples.get(f"{name}_total", samples)
    samples = _wanted(term, samples)
    values: dict[str, Value] = {}
    for replica, own in _by_replica(samples, layout).items():
        told = (sample for sample in own if sample.value != term.unset)
        valid = [sample for sample in told if _in_range(term.kind, name, sample.value, warn)]
        if not valid:
            continue
        if term.by is not None:
            values[replica] = _by_label(term.by, valid)
        elif term.kind is Kind.RATIO:
            values[replica] = max(sample.value for sample in valid)
        else:
            values[replica] = sum(sample.value for sample in valid)
    return {replica: value for replica, value in values.items() if not isinstance(value, float) or math.isfinite(value)}


def _wanted(term: Term, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    if term.where is None:
        return samples
    key, value = term.where
    return tuple(sample for sample in samples if sample.labels.get(key) == value)


def _in_range(kind: Kind, name: str, value: float, warn: Warn) -> bool:
    if not 0 <= value <= (1 if kind is Kind.RATIO else MAX_VALUE):
        warn(f"{name} {value:g} is outside {'0..1' if kind is Kind.RATIO else 'what it can be (0 and up)'}, dropped")
        return False
    return True


def _by_replica(samples: Iterable[Sample], layout: Layout) -> dict[str, list[Sample]]:
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(layout.replica_of(sample.labels), []).append(sample)
    if layout.split is not None:
        groups = {replica: _totals(own, layout.split) for replica, own in groups.items()}
    if layout.copies:
        return {replica: _once(own, layout.copies) for replica, own in groups.items()}
    return groups


def _totals(samples: list[Sample], split: str) -> list[Sample]:
    return [sample for sample in samples if sample.labels.get(split) == ""] or samples


def _once(samples: Iterable[Sample], copies: frozenset[str]) -> list[Sample]:
    """Of samples that differ in nothing but ``copies``, the largest."""
    largest: dict[tuple[tuple[str, str], ...], Sample] = {}
    for sample in samples:
        rest = tuple(sorted((key, value) for key, value in sample.labels.items() if key not in copies))
        if rest not in largest or sample.value > largest[rest].value:
            largest[rest] = sample
    return list(largest.values())


def _by_label(label: str, samples: Iterable[Sample]) -> dict[str, float]:
    totals: dict[str, float] = {}
    for sample in samples:
        key = sample.labels.get(label, "")
        if key in totals or len(totals) < MAX_LABEL_VALUES:
            totals[key] = totals.get(key, 0.0) + sample.value
    return totals


def _histograms(term: Term, name: str, families: Families, warn: Warn, layout: Layout) -> dict[str, Value]:
    buckets, sums, counts = (
        _by_replica(_wanted(term, families.samples.get(f"{name}_{part}", ())), layout)
        for part in ("bucket", "sum", "count")
    )
    found: dict[str, Value] = {}
    for replica, own in buckets.items():
        histogram = _histogram(own, sums.get(replica, ()), counts.get(replica, ()))
        if histogram is None:
            warn(f"{name} has buckets that fall, or no sum or count, dropped")
        else:
            found[replica] = histogram
    return found


def _histogram(buckets: Iterable[Sample], sums: Iterable[Sample], counts: Iterable[Sample]) -> Histogram | None:
    """Cumulative buckets with their sum and count; ``None`` when they contradict each other."""
    cumulative: dict[float, float] = {}
    for sample in buckets:
        try:
            bound = float(sample.labels.get("le", ""))
        except ValueError:
            return None
        cumulative[bound] = cumulative.get(bound, 0.0) + sample.value
    total, count = [s.value for s in sums], [s.value for s in counts]
    observed = cumulative.get(math.inf, sum(count) if count else None)  # which are the same, or one is wrong
    if not total or observed is None or any(math.isnan(bound) for bound in cumulative):
        return None
    if not abs(sum(total)) <= MAX_VALUE or not observed <= MAX_VALUE:
        return None
    cumulative.setdefault(math.inf, observed)
    bounds = _shared(tuple(sorted(cumulative)))
    values = tuple(cumulative[bound] for bound in bounds)
    if list(values) != sorted(values) or values[0] < 0:
        return None
    return Histogram(bounds, values, sum(total), observed)


@lru_cache(maxsize=256)
def _shared(bounds: tuple[float, ...]) -> tuple[float, ...]:
    """The same object for equal bounds: a window holds thousands of histograms, and few different bounds."""
    return bounds
