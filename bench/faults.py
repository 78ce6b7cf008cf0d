"""What an exporter shows while one GPU of the node fails: read from its exposition as a Prometheus would."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from bench.client import WAYS, Client
from bench.figures import p99
from bench.subjects import GPUS, Driver, Subject

SICK = 3
START_SECONDS = 60.0  # a lost GPU is tried again every 30 s
BEFORE, AFTER = 11, 99  # %, what every GPU is told to say: a GPU that shows AFTER was read since
UTILIZATION: Mapping[str, tuple[str, str, float]] = {  # exporter -> metric, label of the index, to percent
    "pinchpoint": ("pinchpoint_gpu_utilization_ratio", "gpu", 100.0),
    "nvitop-exporter": ("gpu_utilization_Percentage", "index", 1.0),
}
FAULTS: Mapping[str, str] = {
    "hangs": f"fault nvmlDeviceGetPowerUsage gpu={SICK} hang",
    "is lost": f"fault * gpu={SICK} code=15",
}


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was seen, by exporter, in words."""

    what: str
    shown: Mapping[str, str]


def observe(
    subjects: Sequence[Subject], driver: Driver, name: str, *, watch_seconds: float, patience_seconds: float
) -> Iterable[Fact]:
    """One GPU fails while all change what they say; then the fault ends. Raises TimeoutError if all were never well."""
    driver.utilization = BEFORE
    _wait(subjects, BEFORE)
    driver.faults = (FAULTS[name],)
    time.sleep(2)  # the fault is in place before the readings change
    driver.utilization = AFTER
    latencies = _scrape_for(subjects, watch_seconds)
    bodies = {subject.name: _body(subject) for subject in subjects}
    shown = {name: _utilization(name, body) for name, body in bodies.items()}
    facts: list[tuple[str, Callable[[Subject], str]]] = [
        (f"healthy GPUs that show what is, of {GPUS - 1}", lambda s: str(_current(shown[s.name], leave_out=SICK))),
        (f"utilisation of GPU {SICK}", lambda s: _value(shown[s.name].get(SICK))),
        (f"says that GPU {SICK} fails", lambda s: _verdict(bodies[s.name])),
        ("scrape p99 meanwhile, ms", lambda s: f"{1e3 * p99(latencies[s.name]):.3g}"),
    ]
    yield from (Fact(f"one GPU {name}: {what}", {s.name: show(s) for s in subjects}) for what, show in facts)
    driver.faults = ()
    recovered: dict[str, str] = {}
    ended = time.monotonic()
    while len(recovered) < len(subjects) and (waited := time.monotonic() - ended) < patience_seconds:
        for subject in subjects:
            if subject.name not in recovered and _current(_utilization(subject.name, _body(subject))) == GPUS:
                recovered[subject.name] = f"after {waited:.0f} s"
        time.sleep(0.5)
    never = {subject.name: f"not within {patience_seconds:g} s" for subject in subjects}
    yield Fact(f"one GPU {name}: well again once it ends", never | recovered)


def _wait(subjects: Sequence[Subject], percent: int, seconds: float = START_SECONDS) -> None:
    limit = time.monotonic() + seconds
    while any(set(_utilization(s.name, _body(s)).values()) != {float(percent)} for s in subjects):
        if time.monotonic() > limit:
            raise TimeoutError(f"not every GPU was well within {seconds:g} s")
        time.sleep(0.5)


def _scrape_for(subjects: Sequence[Subject], seconds: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        for subject in subjects:
            with Client(subject.port, WAYS[0]) as client:
                found[subject.name] += client.scrapes(2)
    return found


def _body(subject: Subject) -> str:
    with Client(subject.port, WAYS[0]) as client:
        return client.scrape().decode()


def _utilization(exporter: str, body: str) -> dict[int, float]:
    """Percent by GPU index."""
    metric, label, scale = UTILIZATION[exporter]
    return {
        int(sample.labels[label]): round(scale * sample.value, 6)
        for family in text_string_to_metric_families(body)
        for sample in family.samples
        if sample.name == metric
    }


def _current(shown: Mapping[int, float], leave_out: int | None = None) -> int:
    return sum(value == AFTER for gpu, value in shown.items() if gpu != leave_out)


def _value(value: float | None) -> str:
    if value is None:
        return "absent"
    if math.isnan(value):
        return "NaN"
    return "current" if value == AFTER else "the last one before, as if it were current"


def _verdict(body: str) -> str:
    """The state that pinchpoint has for it; the peer has no metric that could say so."""
    for family in text_string_to_metric_families(body):
        for sample in family.samples:
            if sample.name == "pinchpoint_gpu_up" and sample.labels["gpu"] == str(SICK):
                return f"yes, gpu_up {sample.value:g}" if sample.value == 0 else "no"
    return "no such metric"
