"""What outlives the process of each engine's verdicts: the class, since when, its course, the seconds in each class.

Values and their text; no file, no clock. In text, times are Unix seconds: the clock of readings ends with the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pinchpoint.diagnosis import Bottleneck, Course, Interval, Settled, Shown
from pinchpoint.outputs.scene import Scene

MOST_BYTES = 16 * 1024 * 1024  # 500 engines that change their class every two minutes are a quarter of it
SAVE_SECONDS = 30.0
FIRST_SAVE_SECONDS = 10.0  # after the start: one that crashes over and over remembers too
WRITE_SECONDS = 5.0  # that a save may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """One engine, on one clock."""

    shown: Shown
    class_seconds: Mapping[Bottleneck, float]
    course: Course = ()

    def moved(self, seconds: float) -> Remembered:
        """The same on a clock that is ahead by ``seconds``."""
        shown = replace(self.shown, since=self.shown.since + seconds, until=self.shown.until + seconds)
        course = tuple(replace(each, start=each.start + seconds, end=each.end + seconds) for each in self.course)
        return replace(self, shown=shown, course=course)


class ForeignError(ValueError):
    """A text that we did not write, or that was damaged since: one line."""


def remembered_of(scene: Scene) -> Mapping[str, Remembered]:
    """Every engine of a scene, in Unix time."""
    seconds: dict[str, dict[Bottleneck, float]] = {}
    for (engine, bottleneck), number in scene.class_seconds.items():
        seconds.setdefault(engine, {})[bottleneck] = number
    found = (
        (
            name,
            Remembered(shown=_shown(settled), class_seconds=seconds.get(name, {}), course=scene.courses.get(name, ())),
        )
        for name, settled in scene.verdicts.items()
    )
    return {name: each.moved(scene.unix_offset_seconds) for name, each in found}


def _shown(settled: Settled) -> Shown:
    """Of an engine that was not seen since the last start, what was shown before it."""
    now = settled.diagnosis
    return settled.earlier or Shown(bottleneck=now.bottleneck, since=settled.since, until=now.at)


_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Counted = Annotated[float, Field(ge=0, le=1e11)]  # three thousand years


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Engine(_Model):
    shown: Bottleneck
    since: _Seconds
    until: _Seconds
    seconds: dict[Bottleneck, _Counted]
    timeline: list[tuple[_Seconds, _Seconds, Bottleneck]]


class _File(_Model):
    format: Literal["pinchpoint verdicts 1"] = "pinchpoint verdicts 1"
    ended: bool  # by the process itself, so that nothing came after
    engines: dict[str, _Engine]


def to_text(every: Mapping[str, Remembered], *, ended: bool) -> str:
    """``every`` in Unix time. Where it is too much for a file, the courses are left out."""
    engines = {name: _engine(each, each.course) for name, each in every.items()}
    text = _File(ended=ended, engines=engines).model_dump_json()
    if len(text) <= MOST_BYTES:
        return text
    engines = {name: _engine(each, ()) for name, each in every.items()}
    return _File(ended=ended, engines=engines).model_dump_json()


def _engine(each: Remembered, course: Course) -> _Engine:
    shown = each.shown
    return _Engine(
        shown=shown.bottleneck,
        since=shown.since,
        until=shown.until,
        seconds=dict(each.class_seconds),
        timeline=[(one.start, one.end, one.bottleneck) for one in course],
    )


def from_text(text: str | bytes, unix: float) -> Mapping[str, Remembered]:
    """What was remembered, as of ``unix``: nothing of it lies in the future, whatever was done to the clock meanwhile.

    Of a process that did not end by itself the last seconds are not known. They are counted to each class that it may
    have counted them to: a counter that went back would be taken for one that began anew, and all of it be added again.
    Raises ``ForeignError``.
    """
    try:
        file = _File.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join("".join(filter(str.isprintable, str(part)))[:40] for part in first["loc"][:2])
        raise ForeignError(f"{where}: {first['msg']}" if where else first["msg"]) from None
    return {name: _read(one, unix, ended=file.ended) for name, one in file.engines.items()}


def _read(one: _Engine, unix: float, *, ended: bool) -> Remembered:
    unseen = 0.0 if ended else min(max(0.0, unix - one.until), SAVE_SECONDS + WRITE_SECONDS)
    course: list[Interval] = []
    for begun, end, bottleneck in one.timeline:
        start = max(begun, course[-1].end) if course else begun
        if start <= min(end, unix):
            course.append(Interval(start=start, end=min(end, unix), bottleneck=bottleneck))
    return Remembered(
        shown=Shown(bottleneck=one.shown, since=min(one.since, one.until), until=one.until),
        class_seconds={name: number + unseen if number else 0.0 for name, number in one.seconds.items()},
        course=tuple(course),
    )
