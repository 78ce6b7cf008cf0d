"""What the status page shows: one tick's scene, put in order for a reader. JSON and HTML are both made of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.capacity import Scaling
from pinchpoint.diagnosis.rates import rate
from pinchpoint.diagnosis.verdict import Bottleneck, Settled
from pinchpoint.outputs.scene import Scene
from pinchpoint.outputs.web import recent
from pinchpoint.outputs.web.words import CLASSES, Severity, within
from pinchpoint.snapshot import Absence, EngineReading, GpuReading, Reason, Window


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
    prompt_tokens_per_second: float | None
    generation_tokens_per_second: float | None
    ttft: recent.Latency | None
    tpot: recent.Latency | None
    history: recent.History

    @property
    def bottleneck(self) -> Bottleneck | None:
        return self.settled.diagnosis.bottleneck if self.settled else None

    @property
    def words(self) -> str:
        return CLASSES[self.bottleneck][0] if self.bottleneck and not self._starting else "Not judged yet"

    @property
    def severity(self) -> Severity:
        return CLASSES[self.bottleneck][1] if self.bottleneck and not self._starting else Severity.UNSURE

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
    def _starting(self) -> bool:
        return self.absent is not None and self.absent.reason is Reason.STARTING


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
    """Puts a scene in order. Pure; costs a pass over the window per engine, so it runs in a thread."""
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
    minute = recent.last_minute(readings) if now else {}
    return EngineView(
        engine=name,
        settled=scene.verdicts.get(name),
        scaling=scene.scaling.get(name),
        now=now,
        last=last,
        absent=scene.snapshot.absence(f"engine/{name}"),
        gpus=tuple(by_index[gpu] for gpu in last.gpus if gpu in by_index) if last else (),
        prompt_tokens_per_second=rate(minute, lambda r: r.prompt_tokens_total),
        generation_tokens_per_second=rate(minute, lambda r: r.generation_tokens_total),
        ttft=recent.latency(minute, lambda r: r.ttft_seconds, now.slo.ttft_seconds) if now else None,
        tpot=recent.latency(minute, lambda r: r.inter_token_seconds, now.slo.tpot_seconds) if now else None,
        history=recent.history(window, name),
    )


def headline(view: View) -> str:
    """The node in one sentence: what is pinched, what can't be seen, which GPU is gone."""
    parts = [_engines_in_words(view.engines)]
    down = [gpu.gpu for gpu in view.scene.snapshot.gpus if not gpu.up]
    if down:
        parts.append(f"GPU {', '.join(down[:4])}{'…' if len(down) > 4 else ''} down")
    return " · ".join(parts)


def _engines_in_words(engines: tuple[EngineView, ...]) -> str:
    if not engines:
        return "No engine found yet"
    if len(engines) == 1:
        pinched = "The engine is pinched" if engines[0].pinched else "The engine"
        return f"{pinched}: {within(engines[0].words)}"
    pinched_count, dark = sum(e.pinched for e in engines), sum(e.dark for e in engines)
    parts = []
    if pinched_count:
        parts.append(f"{pinched_count} of {len(engines)} engines pinched")
    if dark:
        parts.append(
            f"{dark} can't be judged" if pinched_count else f"{dark} of {len(engines)} engines can't be judged"
        )
    if not parts:
        idle = all(e.severity is Severity.QUIET for e in engines)
        parts.append(f"All {len(engines)} engines {'are idle' if idle else 'run freely'}")
    return " · ".join(parts)
