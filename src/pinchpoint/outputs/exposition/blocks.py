"""Rows whose samples come thing by thing, as blocks of lines that are kept as long as the thing stays the same.

An engine is scraped every few seconds and told of every second: what it gave is text already. Of a thing whose numbers
are others, everything but the numbers is kept.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from sys import intern
from typing import Any

from pinchpoint.outputs.catalog import Each, Kind, Metric, Sample
from pinchpoint.outputs.exposition.lines import is_sound, label_text, numbers_of, shape_of, template
from pinchpoint.outputs.label import label_value
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import Histogram

Block = bytes  # all lines of one row about one thing
_Sound = tuple[tuple[str, ...], float | Histogram]


@dataclass(frozen=True, slots=True)
class _Shape:
    """What of a block is no number: which series, in which order, and the lines with room for their values.

    ``template`` is empty for a histogram's, which are long, and soon made of ``named``, the series' label texts.
    ``repeats``: two samples are one series, so that the lines can't be written like this.
    """

    series: list[object]
    named: tuple[str, ...]
    template: str
    repeats: bool


@dataclass(frozen=True, slots=True)
class _Told:
    """One thing as it was last written, in each row."""

    thing: object
    shapes: tuple[_Shape, ...]
    blocks: tuple[Block, ...]
    repeats: bool  # any of its shapes does


_NOTHING = _Shape([], (), "", False)


@dataclass(slots=True)
class Group:
    """All rows of the same ``things``, and what was told of each thing at the last render."""

    metrics: tuple[Metric, ...]
    things: Callable[[Scene], Iterable[tuple[str, Any]]]
    told: dict[str, _Told] = field(default_factory=dict)

    def columns(self, scene: Scene) -> Sequence[tuple[Block, ...]] | None:
        """The blocks of each row; ``None`` when two things give the same series, which rows must sort out alone."""
        told: dict[str, _Told] = {}
        for name, thing in self.things(scene):
            shown = label_value(name)
            if shown in told:
                return None
            before = self.told.get(shown)
            if before is None or not (before.thing is thing or before.thing == thing):
                before = self._written(thing, before)
            told[shown] = before
        self.told = told
        if any(each.repeats for each in told.values()):
            return None
        return list(zip(*(each.blocks for each in told.values()), strict=True)) or [()] * len(self.metrics)

    def _written(self, thing: object, before: _Told | None) -> _Told:
        shapes, blocks = [], []
        for number, metric in enumerate(self.metrics):
            assert isinstance(metric.read, Each)
            shape, block = _block(metric, before.shapes[number] if before else _NOTHING, metric.read.samples(thing))
            shapes.append(shape)
            blocks.append(block)
        return _Told(thing, tuple(shapes), tuple(blocks), any(shape.repeats for shape in shapes))


def groups_of(catalog: Iterable[Metric]) -> tuple[Group, ...]:
    """The rows that come thing by thing."""
    rows: dict[Callable[[Scene], Iterable[tuple[str, Any]]], list[Metric]] = {}
    for metric in catalog:
        if isinstance(metric.read, Each):
            rows.setdefault(metric.read.things, []).append(metric)
    return tuple(Group(tuple(metrics), things) for things, metrics in rows.items())


def _block(metric: Metric, before: _Shape, samples: Iterable[Sample]) -> tuple[_Shape, Block]:
    series: list[object] = []
    numbers: list[float] = []
    sound: list[_Sound] = []
    for labels, value in samples:
        if value is not None and is_sound(value, metric.kind):
            series.append(shape_of(labels, value))
            numbers += numbers_of(value)
            sound.append((labels, value))
    shape = before if series == before.series else _shape(metric, series, sound)
    lines = shape.template or _template(metric, shape.named, sound)
    return shape, (lines % tuple(numbers)).encode()


def _shape(metric: Metric, series: list[object], sound: Sequence[_Sound]) -> _Shape:
    named = tuple(intern(label_text(metric.labels, labels)) for labels, _ in sound)  # many rows have the same
    lines = "" if metric.kind is Kind.HISTOGRAM else _template(metric, named, sound)
    return _Shape(series, named, lines, len(set(named)) < len(named))


def _template(metric: Metric, named: tuple[str, ...], sound: Sequence[_Sound]) -> str:
    return "".join(template(metric, inner, value) for inner, (_, value) in zip(named, sound, strict=True))
