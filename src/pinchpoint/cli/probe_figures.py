"""What the probes of one target come to: medians and their spread, in numbers and in words."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from pinchpoint.snapshot import ProbeOutcome, ProbeReading

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle of some values, and the least and the largest of them."""

    median: float
    low: float
    high: float


def spread(readings: Sequence[ProbeReading], pick: Callable[[ProbeReading], float | None]) -> Spread | None:
    """Of those that have the value; ``None`` when none has."""
    values = [value for reading in readings if (value := pick(reading)) is not None]
    return Spread(median(values), min(values), max(values)) if values else None


LATENCIES: Mapping[str, Callable[[ProbeReading], float | None]] = {
    "ttft_seconds": lambda reading: reading.ttft_seconds,
    "ttfc_seconds": lambda reading: reading.ttfc_seconds,
    "tpot_seconds": lambda reading: reading.tpot_seconds,
    "duration_seconds": lambda reading: reading.duration_seconds,
}


def outcomes(readings: Sequence[ProbeReading]) -> str:
    """``ok``, or how often each outcome came where there are several."""
    counted = Counter(reading.outcome.value for reading in readings)
    return next(iter(counted)) if len(counted) == 1 else ", ".join(f"{n} {word}" for word, n in counted.most_common())


def phases(readings: Sequence[ProbeReading]) -> dict[str, float]:
    """The median of each phase, over the probes that were answered well, else over all."""
    told = [reading for reading in readings if reading.outcome is ProbeOutcome.OK] or readings
    names = dict.fromkeys(name for reading in told for name in reading.phases)
    found = {name: spread(told, lambda reading, name=name: reading.phases.get(name)) for name in names}  # type: ignore[misc]
    return {name: value.median for name, value in found.items() if value is not None}


def latency(seconds: float | None) -> str:
    """Three digits: 8.31 ms, 42.0 ms, 240 ms, 1.24 s."""
    if seconds is None:
        return UNKNOWN
    value, unit = (seconds, "s") if seconds >= 0.9995 else (seconds * 1000, "ms")
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f} {unit}"


def as_json(readings: Sequence[ProbeReading]) -> dict[str, Any]:
    """Medians and spread of repeated probes."""
    told: dict[str, Any] = {
        "probes": len(readings),
        "outcomes": dict(Counter(reading.outcome.value for reading in readings)),
    }
    picks = {**LATENCIES, "characters_per_second": lambda reading: reading.characters_per_second}
    for name, pick in picks.items():
        if found := spread(readings, pick):
            told[name] = {"median": found.median, "min": found.low, "max": found.high}
    return told
