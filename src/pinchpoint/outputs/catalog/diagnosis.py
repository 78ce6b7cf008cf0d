"""The diagnosis family: the class of each engine's bottleneck, and what speaks for it."""

from collections.abc import Callable, Iterable

from pinchpoint.diagnosis.verdict import CODES, Bottleneck, Settled
from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, counter, gauge
from pinchpoint.outputs.scene import Scene


def _plain(name: str, text: str, value: Callable[[Scene, Settled], float]) -> Metric:
    """A number of each engine's verdict."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((engine,), value(scene, settled)) for engine, settled in scene.verdicts.items())

    return Metric(name=name, kind=Kind.GAUGE, help=text, labels=("engine",), read=read)


def _classes(scene: Scene) -> Iterable[Sample]:
    for engine, settled in scene.verdicts.items():
        yield from (((engine, one), settled.diagnosis.bottleneck is one) for one in Bottleneck)


def _scores(scene: Scene) -> Iterable[Sample]:
    for engine, settled in scene.verdicts.items():
        yield from (((engine, one), score) for one, score in settled.diagnosis.scores.items())


def _signals(scene: Scene) -> Iterable[Sample]:
    for engine, settled in scene.verdicts.items():
        yield from (((engine, signal), value) for signal, value in settled.diagnosis.signals.items())


def _advice(scene: Scene) -> Iterable[Sample]:
    for engine, settled in scene.verdicts.items():
        yield from (((engine, advice.action), 1) for advice in settled.diagnosis.advice)


def _class_seconds(scene: Scene) -> Iterable[Sample]:
    engines = sorted({engine for engine, _ in scene.class_seconds} | set(scene.verdicts))
    return (((engine, one), scene.class_seconds.get((engine, one), 0)) for engine in engines for one in Bottleneck)


def _more_gpus_help(scene: Scene) -> Iterable[Sample]:
    return (((engine,), scaling.more_gpus_help) for engine, scaling in scene.scaling.items())


DIAGNOSIS_METRICS = (
    gauge(
        "bottleneck",
        ("engine", "class"),
        _classes,
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
    gauge("bottleneck_score", ("engine", "class"), _scores, "How strongly each class that was weighed speaks, 0 to 1."),
    counter(
        "bottleneck_class_seconds_total",
        ("engine", "class"),
        _class_seconds,
        "Time that the engine has spent in each class since the daemon started.",
    ),
    gauge(
        "diagnosis_signal",
        ("engine", "signal"),
        _signals,
        "What the diagnosis measured over its window, in the unit that the signal's name ends in.",
    ),
    gauge("advice", ("engine", "action"), _advice, "1 for each lever that the diagnosis advises."),
    gauge(
        "more_gpus_help",
        ("engine",),
        _more_gpus_help,
        "Whether more GPUs would help (1) or not (0); absent when the evidence does not say.",
    ),
)
