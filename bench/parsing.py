"""What it takes to read one engine's answer: pinchpoint's reading, beside the parser of Prometheus's own client."""

import time
from collections.abc import Callable, Iterator

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from bench.engine_body import Body
from bench.figures import Figure
from bench.measure import Progress
from bench.subjects import Subject
from pinchpoint import __version__
from pinchpoint.snapshot import EngineTarget
from pinchpoint.sources.engine import Recall, reading_from_body
from pinchpoint.sources.engine.exposition import parse

PARSERS = (
    Subject("pinchpoint", __version__, 0, 0),
    Subject("prometheus_client", getattr(prometheus_client, "__version__", ""), 0, 0),
)
Read = Callable[[bytes], object]


def measure_parsing(engines: int, repeats: int, progress: Progress) -> Iterator[Figure]:
    """Each of ``engines`` engines is read in turn, so that nothing kept of one serves another."""
    bodies = [Body(number) for number in range(engines)]
    target = EngineTarget(engine="engine", url="http://127.0.0.1")
    theirs = _timed(
        bodies, lambda _: lambda body: list(text_string_to_metric_families(body.decode())), repeats, progress
    )
    for what, ours in (
        ("samples", lambda recall: lambda body: parse(body, None, recall)),
        ("a reading, translated", lambda recall: lambda body: reading_from_body(target, body, None, 0.0, recall)),
    ):
        rounds = {"pinchpoint": _timed(bodies, ours, repeats, progress), "prometheus_client": theirs}
        yield Figure(what=what, unit="ms", rounds=rounds)


def _theirs(body: bytes) -> object:
    return list(text_string_to_metric_families(body.decode()))


def _timed(bodies: list[Body], reader: Callable[[Recall], Read], repeats: int, progress: Progress) -> list[list[float]]:
    readers = [reader(Recall()) for _ in bodies]
    rounds = []
    for repeat in range(1 + repeats):
        progress(f"reading, {repeat} of {repeats}")
        taken = []
        for body, read in zip(bodies, readers, strict=True):
            answer = body.answer()
            started = time.perf_counter()
            read(answer)
            taken.append(1e3 * (time.perf_counter() - started))
        rounds.append(taken)
    return rounds[1:]  # the first fills what is kept
