"""``gpu.jsonl``, ``host.jsonl`` and ``probe.jsonl``: readings in time order, and which of them holds at a moment."""

import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter

from pinchpoint.snapshot import NVLINK_FAMILIES, GpuReading, GpuState, HostReading, ProbeOutcome, ProbeReading
from pinchpoint.sources.recording.failure import RecordingError
from pinchpoint.sources.recording.files import Json, read_objects
from pinchpoint.sources.recording.meta import validated

T = TypeVar("T")

_GPU: TypeAdapter[GpuReading] = TypeAdapter(GpuReading)
_HOST: TypeAdapter[HostReading] = TypeAdapter(HostReading)
_PROBE: TypeAdapter[ProbeReading] = TypeAdapter(ProbeReading)


@dataclass(frozen=True, slots=True)
class Series(Generic[T]):
    """Values in time order."""

    times: tuple[float, ...]
    values: tuple[T, ...]

    def at(self, seconds: float, not_older_than: float) -> T | None:
        """The newest value at or before ``seconds``, or ``None`` when that is too old or there is none."""
        index = bisect_right(self.times, seconds + 1e-6) - 1  # a step's time is a product, so it may be a hair early
        if index < 0 or seconds - self.times[index] > not_older_than:
            return None
        return self.values[index]

    def last(self, count: int, seconds: float) -> tuple[T, ...]:
        """The newest ``count`` values at ``seconds``, oldest first."""
        end = bisect_right(self.times, seconds + 1e-6)
        return self.values[max(0, end - count) : end]


def _series(timed: Iterable[tuple[float, T]]) -> Series[T]:
    ordered = sorted(timed, key=lambda pair: pair[0])
    return Series(tuple(time for time, _ in ordered), tuple(value for _, value in ordered))


def read_gpus(path: Path) -> Series[tuple[GpuReading, ...]]:
    """A line a step, each with every GPU. No file, no readings."""
    return _series((_time(raw, path, line), _gpus(raw, path, line)) for line, raw in _lines(path))


def read_hosts(path: Path) -> Series[HostReading]:
    """A line a step."""
    return _series(
        (time, validated(_HOST, {**_measured(raw), "at": time}, path, line))
        for line, raw in _lines(path)
        for time in (_time(raw, path, line),)
    )


def read_probes(path: Path) -> dict[str, Series[ProbeReading]]:
    """A line a probe; one series a target."""
    by_target: dict[str, list[ProbeReading]] = {}
    for line, raw in _lines(path):
        reading = validated(_PROBE, _probe_keys(_measured(raw)) | {"at": _time(raw, path, line)}, path, line)
        by_target.setdefault(reading.target, []).append(reading)
    return {target: _series((r.at, r) for r in readings) for target, readings in by_target.items()}


def _lines(path: Path) -> Iterable[tuple[int, Json]]:
    return read_objects(path) if os.path.lexists(path) else ()


def _time(raw: Json, path: Path, line: int) -> float:
    time = raw.get("t")
    if isinstance(time, bool) or not isinstance(time, int | float) or abs(time) > 1e12:
        raise RecordingError(path, '"t" is missing or no number; give seconds since the first scrape', line=line)
    return float(time)


def _gpus(raw: Json, path: Path, line: int) -> tuple[GpuReading, ...]:
    gpus = raw.get("gpus")
    if not isinstance(gpus, list) or not all(isinstance(gpu, dict) and "gpu" in gpu for gpu in gpus):
        raise RecordingError(path, '"gpus" must be a list of objects, each with its "gpu" index', line=line)
    time = _time(raw, path, line)
    return tuple(validated(_GPU, _gpu_keys(gpu) | _nvlinks(gpu, path, line) | {"at": time}, path, line) for gpu in gpus)


def _nvlinks(raw: Json, path: Path, line: int) -> Json:
    """The links, whose families are objects by link like any other; nothing where there are none."""
    links: dict[str, Json] = {}
    for family, field in NVLINK_FAMILIES.items():
        by_link = raw.get(family) or {}
        if not isinstance(by_link, dict):
            raise RecordingError(path, f'"{family}" must be an object by link, like {{"0": 1}}', line=line)
        for link, value in by_link.items():
            links.setdefault(link, {"link": link})[field] = value
    ordered = sorted(links.values(), key=lambda link: (len(str(link["link"])), link["link"]))
    return {"nvlinks": ordered} if ordered else {}


def _measured(raw: Json, depth: int = 2) -> Json:
    """Nothing that is measured here is below 0: what is, on its own or by one label or two, is unknown."""
    return {
        key: _measured(value, depth - 1) if depth and isinstance(value, dict) else value
        for key, value in raw.items()
        if not isinstance(value, int | float) or value >= 0
    }


def _gpu_keys(raw: Json) -> Json:
    gpu = str(raw["gpu"])
    known = {key: value for key, value in _measured(raw).items() if value is not None and key not in NVLINK_FAMILIES}
    keys: Json = {"uuid": f"gpu-{gpu}", **known, "gpu": gpu}
    if keys.get("up", 1) in (0, False):
        keys.setdefault("state", GpuState.LOST)
    return keys


def _probe_keys(raw: Json) -> Json:
    """An outcome that only another version knows is still a failure, and its name is kept."""
    outcome = raw.get("outcome")
    if isinstance(outcome, str) and outcome not in set(ProbeOutcome):
        return {**raw, "outcome": ProbeOutcome.INTERNAL, "detail": f"recorded outcome: {outcome[:100]}"}
    return dict(raw)
