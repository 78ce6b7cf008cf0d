"""Two hours of random series with every trouble: gaps, resets, series that go and come, NaN, a scraper that stops.

Where Prometheus 2 and 3 differ there is nothing: no sample lies exactly at the end of a range, and a counter begins
with 0 and a leap (2.x extrapolates to a counter's zero further than 3.x does where it begins slowly).
"""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from pinchpoint.alerting import ALERTS
from pinchpoint.alerting.series import Sample
from pinchpoint.outputs.catalog import CATALOG, Kind, Metric
from tests.fakes.remote_write import Written

BEGIN_MS = 1_790_000_000_137
BATCHES = 480
STEP_MS = 15_000
OUTAGE = range(300, 340)  # ten minutes in which nobody scrapes: longer than Prometheus looks back
BAD = range(200, 260)  # a quarter of an hour in which two metrics are missing altogether


@dataclass
class Trouble:
    """The batches, by their time in milliseconds; a batch has the series' key and value."""

    batches: list[tuple[int, list[Sample]]] = field(default_factory=list)

    def written(self) -> Iterator[list[Written]]:
        """The same as a scraper writes it: a series that is missing in a batch gets a stale marker."""
        before: dict[tuple[str, tuple[str, ...]], dict[str, str]] = {}
        for at, samples in self.batches:
            now = {(name, values): dict(zip(names, values, strict=True)) for name, names, values, _ in samples}
            stale = [({"__name__": name, **labels}, [(at, None)]) for (name, values), labels in before.items()
                     if (name, values) not in now]  # fmt: skip
            yield [
                ({"__name__": name, **dict(zip(names, values, strict=True))}, [(at, value)])
                for name, names, values, value in samples
            ] + stale
            before = now


def trouble(seed: int) -> Trouble:
    """The trouble of a seed."""
    chance = random.Random(seed)
    made = [_one(chance, *each) for each in (*_own_series(), *_series_of_the_catalogue())]
    batches = []
    for number in range(BATCHES):
        at = BEGIN_MS + number * STEP_MS + chance.randrange(-40, 40)
        samples = [sample for series in made if (sample := next(series)) is not None]
        if number in BAD:
            samples = [sample for sample in samples if sample[0] not in ("gauge", "single")]
        if number not in OUTAGE:
            batches.append((at, samples))
    return Trouble(batches)


def moments(seed: int, count: int) -> list[int]:
    """When to ask, in milliseconds: in the outage and in the bad quarter too."""
    chance = random.Random(seed)
    bad = BEGIN_MS + BAD[20] * STEP_MS + 777, BEGIN_MS + OUTAGE[30] * STEP_MS + 777
    return sorted((*bad, *(BEGIN_MS + chance.randrange(STEP_MS, BATCHES * STEP_MS) for _ in range(count))))


_Series = tuple[str, Kind, Mapping[str, str]]


def _own_series() -> Iterator[_Series]:
    for engine, replica in product("abc", "01"):
        yield "gauge", Kind.GAUGE, {"engine": engine, "replica": replica, "job": "j", "empty": ""}
        for reason in ("dns", "tls"):
            labels = {"engine": engine, "replica": replica, "job": "j", "reason": reason}
            yield "errors_total", Kind.COUNTER, labels
        yield "requests_total", Kind.COUNTER, {"engine": engine, "replica": replica, "job": "j"}
    for engine in "abc":
        yield "limit", Kind.GAUGE, {"engine": engine, "job": "j", "zone": f"zone-{engine}"}
        for le in ("0.1", "0.5", "1.0", "+Inf"):
            yield "ttft_bucket", Kind.COUNTER, {"engine": engine, "le": le}
    yield "single", Kind.GAUGE, {}


def _series_of_the_catalogue() -> Iterator[_Series]:
    """Of each metric that an alert names some series, with the label values that the alerts ask for and others."""
    text = "\n".join(alert.expr for alert in ALERTS)
    yield "up", Kind.GAUGE, {"job": "pinchpoint", "instance": "i"}
    for metric in CATALOG:
        for name in metric.series_names:
            if re.search(rf"\b{name}\b", text):
                for labels in _label_sets(metric, text):
                    kind = Kind.GAUGE if metric.kind is Kind.INFO else metric.kind
                    yield name, Kind.COUNTER if kind is Kind.HISTOGRAM else kind, labels


def _label_sets(metric: Metric, text: str) -> Sequence[Mapping[str, str]]:
    target = {"job": "pinchpoint", "instance": "i"}
    choices = []
    for label in metric.labels:
        asked = {value for found in re.findall(rf'\b{label}[!=]~?"([^"]*)"', text) for value in found.split("|")}
        plain = sorted(value for value in asked if re.fullmatch(r"\w+", value))
        choices.append([*plain[:4], "other"] if label != "uuid" else ["one"])
    return [target | dict(zip(metric.labels, values, strict=True)) for values in list(product(*choices))[:12]]


def _one(chance: random.Random, name: str, kind: Kind, labels: Mapping[str, str]) -> Iterator[Sample | None]:
    """A series' values, batch by batch; ``None`` while it is away."""
    value, steps, away = 0.0, 0, chance.random() < 0.2
    while True:
        if chance.random() < (0.1 if away else 0.02):
            away = not away
        if kind is Kind.COUNTER:
            if chance.random() < 0.01:
                value, steps = 0.0, 0
            elif steps == 1:
                value = float(chance.randrange(500, 1000))
            elif steps:
                value += chance.choice((0, 0, 1, 2, 3, 14.25))
            steps += 1
        else:
            value = chance.choice((0.0, 1.0, 1.0, 3.0, value, value, chance.random(), 1e9 * chance.random()))
            value = math.nan if chance.random() < 0.01 else value
        if name.endswith("timestamp_seconds"):
            value = BEGIN_MS // 1000 + chance.randrange(BATCHES * STEP_MS // 1000)
        yield None if away else (name, tuple(labels), tuple(labels.values()), value)
