"""A recording, as a sequence of snapshots: what the daemon would have seen, had it been there."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pinchpoint.snapshot import (
    LAST_PROBES,
    Absence,
    EngineFacts,
    EngineReading,
    EngineTarget,
    GpuReading,
    Placement,
    ProbeReading,
    Slo,
    Snapshot,
    compared,
)
from pinchpoint.sources.recording.engines import Observed, read_engine, read_service, scrape_files, steps_of
from pinchpoint.sources.recording.failure import RecordingError
from pinchpoint.sources.recording.lines import Series, read_gpus, read_hosts, read_probes
from pinchpoint.sources.recording.meta import Meta, Replica, read_meta

MAX_STEP_SECONDS = 86_400.0
FRESH_STEPS = 3  # a GPU or host line holds for so many steps, as three missed readings make a daemon's stale
PROBE_FRESH_SECONDS = 300.0  # probes are rare: their result holds for longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A recording that has been read: ``snapshots`` in time order, the first at 0, ``step_seconds`` apart.

    ``service`` is the engine that the whole recording is about: the only one of ``engines``, or, when there are several
    behind a balancer, one more engine that every snapshot holds beside them and whose replicas are all of theirs.
    ``None`` when the engines have nothing but the node in common: then each is a service of its own.
    """

    snapshots: tuple[Snapshot, ...]
    engines: tuple[str, ...]
    service: str | None
    facts: EngineFacts
    slo: Slo
    step_seconds: float
    simulated: bool


def read_recording(folder: Path, step_seconds: float | None = None) -> Recording:
    """Read ``folder``; ``step_seconds`` overrides that of its ``meta.json`` (default there: 1).

    Blocks: about 5 ms a scrape. Raises ``RecordingError``, one line that names file, cause and remedy.
    """
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        raise RecordingError(folder, "is no folder that can be read; give the folder that the *.prom files lie in")
    meta = read_meta(folder / "meta.json")
    step = step_seconds if step_seconds is not None else meta.step_seconds or 1.0
    if not 0 < step <= MAX_STEP_SECONDS:
        raise RecordingError(folder, f"the step must be above 0 seconds and at most a day, not {step:g}")
    parts = _parts(folder, meta)
    observed = _observed(folder, meta, parts, step)
    service = _service_name(folder, meta, parts)
    if service is not None and service not in observed:
        observed[service] = _behind_a_balancer(service, meta, parts, observed)
    return Recording(
        snapshots=_snapshots(folder, meta, parts, list(observed.values()), step, service),
        engines=tuple(part.name for part in parts),
        service=service,
        facts=meta.facts,
        slo=meta.slo,
        step_seconds=step,
        simulated=meta.simulated,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One engine of a recording and the folder that its scrapes lie in."""

    name: str
    folder: Path
    target: EngineTarget


def _parts(folder: Path, meta: Meta) -> tuple[_Part, ...]:
    """The engines that ``meta.json`` names, else the sub-folders with scrapes, else the folder itself."""
    replicas = meta.replicas or _sub_folders(folder)
    if not replicas and meta.services:
        raise RecordingError(folder, "no engine was seen while it was recorded; start or name one and record again")
    if not replicas:
        name = folder.resolve().name or "service"
        target = EngineTarget(engine=name, url="", facts=meta.facts, slo=meta.slo, gpus=meta.gpus)
        return (_Part(name=name, folder=folder, target=target),)
    alone = replace(meta.facts, data_parallel_size=None)  # what meta.json says of replicas is about the service
    return tuple(
        _Part(
            name=replica.name,
            folder=folder / replica.name,
            target=EngineTarget(
                engine=replica.name,
                url="",
                facts=replica.facts or alone,
                slo=replica.slo or meta.slo,
                gpus=replica.gpus,
            ),
        )
        for replica in replicas
    )


def _sub_folders(folder: Path) -> tuple[Replica, ...]:
    """Sub-folders with scrapes, where the root has none of its own and ``meta.json`` names none."""
    if any(folder.glob("*.prom")):
        return ()
    return tuple(Replica(name=path.name) for path in sorted(folder.iterdir()) if any(path.glob("*.prom")))


def _service_name(folder: Path, meta: Meta, parts: Sequence[_Part]) -> str | None:
    if len(parts) == 1 and (meta.services or parts[0].folder == folder):
        return parts[0].name
    if meta.services:
        return None
    name = folder.resolve().name or "service"
    return "service" if name in {part.name for part in parts} else name


def _observed(folder: Path, meta: Meta, parts: Sequence[_Part], step: float) -> dict[str, tuple[Observed, ...]]:
    """Every engine's readings, one a step."""
    files = {part.name: scrape_files(part.folder, may_be_none=meta.services) for part in parts}
    steps = steps_of(folder, (name for own in files.values() for name in own), numbered=meta.numbered)
    if not steps:
        raise RecordingError(folder, "ended before its first step; record for longer")
    stamped = step == meta.step_seconds  # another step is another time
    return {part.name: read_engine(part.target, files[part.name], steps, step, stamped=stamped) for part in parts}


def _behind_a_balancer(
    service: str, meta: Meta, parts: Sequence[_Part], observed: Mapping[str, tuple[Observed, ...]]
) -> tuple[Observed, ...]:
    gpus = meta.gpus or tuple(dict.fromkeys(gpu for part in parts for gpu in part.target.gpus))
    return read_service(EngineTarget(engine=service, url="", facts=meta.facts, slo=meta.slo, gpus=gpus), observed)


def _snapshots(
    folder: Path,
    meta: Meta,
    parts: Sequence[_Part],
    observed: list[tuple[Observed, ...]],
    step: float,
    service: str | None,
) -> tuple[Snapshot, ...]:
    folders = dict.fromkeys((folder, *(part.folder for part in parts)))
    gpus = [read_gpus(place / "gpu.jsonl") for place in folders]
    hosts = read_hosts(folder / "host.jsonl")
    probes = {target: _leading_to(service, own) for target, own in read_probes(folder / "probe.jsonl").items()}

    def snapshot(number: int, engines: tuple[Observed, ...]) -> Snapshot:
        at = number * step
        latest = (series.at(at, PROBE_FRESH_SECONDS) for series in probes.values())
        return Snapshot(
            at=at,
            gpus=_gpus_at(gpus, at, FRESH_STEPS * step),
            engines=tuple(seen for seen in engines if isinstance(seen, EngineReading)),
            probes=tuple(probe for probe in latest if probe is not None),
            comparisons=compared((series.last(LAST_PROBES, at) for series in probes.values()), at),
            host=hosts.at(at, FRESH_STEPS * step),
            links=meta.links,
            absences=tuple(seen for seen in engines if isinstance(seen, Absence)),
        )

    return tuple(snapshot(number, engines) for number, engines in enumerate(zip(*observed, strict=True)))


def _leading_to(service: str | None, probes: Series[ProbeReading]) -> Series[ProbeReading]:
    """A local probe that names no engine went to the service that the recording is about."""
    named = (
        replace(probe, engine=service) if probe.engine is None and probe.placement is Placement.LOCAL else probe
        for probe in probes.values
    )
    return Series(probes.times, tuple(named))


def _gpus_at(places: list[Series[tuple[GpuReading, ...]]], at: float, not_older_than: float) -> tuple[GpuReading, ...]:
    """Each GPU once: the root's line speaks before a sub-folder's that repeats it."""
    found: dict[str, GpuReading] = {}
    for place in places:
        for reading in place.at(at, not_older_than) or ():
            found.setdefault(reading.uuid, reading)
    return tuple(found.values())
