"""What the status page shows: one tick's scene, put in order for a reader. JSON and HTML are both made of it."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.alerting import KV_CACHE_HIGH_RATIO
from pinchpoint.capacity import Scaling
from pinchpoint.diagnosis.course import Course
from pinchpoint.diagnosis.rates import Histories, rate
from pinchpoint.diagnosis.verdict import Bottleneck, Objective, Settled
from pinchpoint.outputs.class_words import CLASS_WORDS
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web import recent
from pinchpoint.outputs.web.words import SEVERITIES, Severity, within
from pinchpoint.snapshot import Absence, EngineReading, GpuReading, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineView:
    """One engine. ``last`` is its newest reading, which tells its name and GPUs even when it is ``absent`` now."""

    engine: str
    settled: Settled | None  # None: not judged yet
    scaling: Scaling | None
    now: EngineReading | None  # None: no fresh reading
    last: EngineReading | None
    absent: Absence | None
    gpus: tuple[GpuReading, ...]
    window: Window
    course: Course  # of its classes
    unix_offset: float

    @property
    def prompt_tokens_per_second(self) -> float | None:
        return rate(self._minute, lambda r: r.prompt_tokens_total)

    @property
    def generation_tokens_per_second(self) -> float | None:
        return rate(self._minute, lambda r: r.generation_tokens_total)

    @property
    def history(self) -> recent.History:
        """Made anew each time: a pass over the window, which most engines of a fleet are not shown with."""
        return recent.history(self.window, self.engine)

    @property
    def _minute(self) -> Histories:
        return recent.last_minute(self.window.engine(self.engine)) if self.now else {}

    @property
    def bottleneck(self) -> Bottleneck | None:
        return self.settled.diagnosis.bottleneck if self.settled else None

    @property
    def words(self) -> str:
        return CLASS_WORDS[self.bottleneck] if self.bottleneck and not self.starting else "Starting"

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.bottleneck] if self.bottleneck and not self.starting else Severity.QUIET

    @property
    def dark(self) -> bool:
        """Nothing can be said of it."""
        return self.severity is Severity.UNSURE or self.bottleneck is Bottleneck.NO_DATA

    @property
    def calm(self) -> bool:
        """Nobody needs to look at it."""
        return self.severity in (Severity.FINE, Severity.QUIET)

    @property
    def pinched(self) -> bool:
        return self.severity in (Severity.CRITICAL, Severity.PINCHED) and not self.dark

    @property
    def model(self) -> str | None:
        if self.last is None:
            return None
        return self.last.facts.model or next((r.model for r in self.last.replicas if r.model), None)

    @property
    def starting(self) -> bool:
        """The first readings are still on their way: nothing is wrong, and nothing is known."""
        return self.settled is None or self.settled.diagnosis.collecting

    @property
    def ttft(self) -> Objective | None:
        """As the verdict sees it, over the window of the verdict."""
        if self.now is None:
            return None
        judged = self.settled.diagnosis.ttft if self.settled else None
        return judged or Objective(slo_seconds=self.now.slo.ttft_seconds)

    @property
    def tpot(self) -> Objective | None:
        if self.now is None:
            return None
        judged = self.settled.diagnosis.inter_token if self.settled else None
        return judged or Objective(slo_seconds=self.now.slo.tpot_seconds)

    def late(self, objective: Objective | None) -> bool:
        """Whether to sound the alarm: never beside a verdict that nobody suffers, which may be about to change."""
        return objective is not None and objective.missed and not self.calm

    @property
    def over_alert_line(self) -> bool | None:
        """Whether the alert on a full KV cache pages on this; it does so too while nobody waits."""
        usage = recent.fullest(self.now) if self.now else None
        return None if usage is None else usage > KV_CACHE_HIGH_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The scene with its engines worst first, and the GPUs that belong to none of them."""

    scene: Scene
    engines: tuple[EngineView, ...]
    other_gpus: tuple[GpuReading, ...]

    @property
    def now(self) -> float:
        return self.scene.snapshot.at

    @property
    def at_unix_seconds(self) -> float:
        return self.now + self.scene.unix_offset_seconds

    @property
    def severity(self) -> Severity:
        if any(not gpu.up for gpu in self.scene.snapshot.gpus):
            return Severity.CRITICAL
        return self.engines[0].severity if self.engines else Severity.UNSURE


def view(scene: Scene) -> View:
    """Puts a scene in order. Pure; to go through it all takes a while, so it runs in a thread."""
    window = scene.window.last(recent.HISTORY_SECONDS)
    by_index = {gpu.gpu: gpu for gpu in scene.snapshot.gpus}
    engines = [_engine(scene, window, name, by_index) for name in scene.snapshot.engine_names()]
    owned = {gpu.uuid for engine in engines for gpu in engine.gpus}
    return View(
        scene=scene,
        engines=tuple(sorted(engines, key=lambda e: (tuple(Severity).index(e.severity), e.engine))),
        other_gpus=tuple(gpu for gpu in scene.snapshot.gpus if gpu.uuid not in owned),
    )


def _engine(scene: Scene, window: Window, name: str, by_index: Mapping[str, GpuReading]) -> EngineView:
    readings = window.engine(name)
    now = scene.snapshot.engine(name)
    last = now or (readings[-1] if readings else None)
    return EngineView(
        engine=name,
        settled=scene.verdicts.get(name),
        scaling=scene.scaling.get(name),
        now=now,
        last=last,
        absent=scene.snapshot.absence(f"engine/{name}"),
        gpus=tuple(by_index[gpu] for gpu in last.gpus if gpu in by_index) if last else (),
        window=window,
        course=scene.courses.get(name, ()),
        unix_offset=scene.unix_offset_seconds,
    )


def headline(view: View) -> str:
    """The node in one sentence: what is pinched, what can't be seen, which GPU is gone."""
    parts = [_engines_in_words(view.engines)]
    down = [gpu.gpu for gpu in view.scene.snapshot.gpus if not gpu.up]
    if down:
        parts.append(f"GPU {', '.join(down[:4])}{'…' if len(down) > 4 else ''} down")
    return " · ".join(parts)


STARTING = "Starting: first verdict in a few seconds"
_ALONE = {
    Bottleneck.NO_DATA: "The engine gives no data",
    Bottleneck.UNKNOWN: "The engine can't be judged",
}


def _engines_in_words(engines: tuple[EngineView, ...]) -> str:
    if not engines:
        return "No engine is watched here"
    if all(engine.starting for engine in engines):
        return STARTING
    if len(engines) == 1:
        return _alone(engines[0])
    pinched, dark = sum(e.pinched for e in engines), sum(e.dark for e in engines)
    if not pinched and not dark:
        return _all_is_well(engines)
    of = f"of {len(engines)} engines"
    parts = [f"{pinched} {of} pinched"] if pinched else []
    if dark:
        parts.append(f"{dark} can't be judged" if pinched else f"{dark} {of} can't be judged")
    starting = sum(engine.starting for engine in engines)
    return " · ".join([*parts, f"{starting} starting"] if starting else parts)


def _alone(engine: EngineView) -> str:
    if engine.pinched:
        return f"The engine is pinched: {within(engine.words)}"
    assert engine.bottleneck is not None
    return _ALONE.get(engine.bottleneck, f"The engine is {within(engine.words)}")


def _all_is_well(engines: tuple[EngineView, ...]) -> str:
    counted = Counter(within(engine.words) for engine in engines)
    if len(counted) == 1:
        return f"{'Both' if len(engines) == 2 else f'All {len(engines)}'} engines are {next(iter(counted))}"
    return f"No engine is pinched: {', '.join(f'{number} {words}' for words, number in counted.items())}"
