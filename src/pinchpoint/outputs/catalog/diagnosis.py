"""The diagnosis family: the class of each engine's bottleneck, and what speaks for it."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from pinchpoint.diagnosis.verdict import CODES, Advice, Bottleneck, Diagnosis, Settled
from pinchpoint.outputs.catalog.metric import Each, Kind, Metric, Sample, counter, gauge
from pinchpoint.outputs.scene import Scene

T = TypeVar("T")
_CLASSES = tuple(Bottleneck)  # an enumeration is slow to go through


def _plain(name: str, text: str, value: Callable[[Scene, Settled], float]) -> Metric:
    """A number of each engine's verdict."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((engine,), value(scene, settled)) for engine, settled in scene.verdicts.items())

    return Metric(name=name, kind=Kind.GAUGE, help=text, labels=("engine",), read=read)


def _of_verdict(part: Callable[[Diagnosis], T], samples: Callable[[str, T], Iterable[Sample]]) -> Each[tuple[str, T]]:
    """Samples of a part of each engine's verdict, which most parts outlive."""

    def parts(scene: Scene) -> Iterable[tuple[str, tuple[str, T]]]:
        return ((engine, (engine, part(settled.diagnosis))) for engine, settled in scene.verdicts.items())

    return Each(parts, lambda told: samples(*told))


def _classes(engine: str, bottleneck: Bottleneck) -> Iterable[Sample]:
    return (((engine, one), bottleneck is one) for one in _CLASSES)


def _scores(engine: str, scores: Mapping[Bottleneck, float]) -> Iterable[Sample]:
    return (((engine, one), score) for one, score in scores.items())


def _signals(engine: str, signals: Mapping[str, float]) -> Iterable[Sample]:
    return (((engine, signal), value) for signal, value in signals.items())


def _advice(engine: str, every: tuple[Advice, ...]) -> Iterable[Sample]:
    return (((engine, advice.action), 1) for advice in every)


def _seconds(scene: Scene) -> Iterable[tuple[str, tuple[str, tuple[float, ...]]]]:
    seconds = scene.class_seconds
    for engine in sorted({engine for engine, _ in seconds} | set(scene.verdicts)):
        yield engine, (engine, tuple(seconds.get((engine, one), 0.0) for one in _CLASSES))


def _class_seconds(told: tuple[str, tuple[float, ...]]) -> Iterable[Sample]:
    engine, seconds = told
    return (((engine, one), number) for one, number in zip(_CLASSES, seconds, strict=True))


def _more_gpus_help(scene: Scene) -> Iterable[Sample]:
    return (((engine,), scaling.more_gpus_help) for engine, scaling in scene.scaling.items())


DIAGNOSIS_METRICS = (
    gauge(
        "bottleneck",
        ("engine", "class"),
        _of_verdict(lambda diagnosis: diagnosis.bottleneck, _classes),
        "The engine's bottleneck: 1 for the class it is in, 0 for every other.",
    ),
    _plain(
        "bottleneck_class_code",
        "The class as a number, for timelines; codes are only ever appended.",
        lambda _, settled: CODES[settled.diagnosis.bottleneck],
    ),
    _plain(
        "bottleneck_confidence_ratio",
        "How sure the diagnosis is of its class.",
        lambda _, settled: settled.diagnosis.confidence_ratio,
    ),
    _plain(
        "bottleneck_since_timestamp_seconds",
        "When the class began to hold, in Unix time.",
        lambda scene, settled: settled.since + scene.unix_offset_seconds,
    ),
    gauge(
        "bottleneck_score",
        ("engine", "class"),
        _of_verdict(lambda diagnosis: diagnosis.scores, _scores),
        "How strongly each class that was weighed speaks, 0 to 1.",
    ),
    counter(
        "bottleneck_class_seconds_total",
        ("engine", "class"),
        Each(_seconds, _class_seconds),
        "Time that the engine has spent in each class since it is watched, as far as is remembered.",
    ),
    gauge(
        "diagnosis_signal",
        ("engine", "signal"),
        _of_verdict(lambda diagnosis: diagnosis.signals, _signals),
        "What the diagnosis measured over its window, in the unit that the signal's name ends in.",
    ),
    gauge(
        "advice",
        ("engine", "action"),
        _of_verdict(lambda diagnosis: diagnosis.advice, _advice),
        "1 for each lever that the diagnosis advises.",
    ),
    gauge(
        "more_gpus_help",
        ("engine",),
        _more_gpus_help,
        "Whether more GPUs would help (1) or not (0); absent when the evidence does not say.",
    ),
)
