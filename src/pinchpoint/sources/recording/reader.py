"""A recording, as a sequence of snapshots: what the daemon would have seen, had it been there."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    EngineTarget,
    GpuReading,
    Slo,
    Snapshot,
)
from pinchpoint.sources.recording.engines import Observed, read_engine, read_service, scrape_files
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
    """

    snapshots: tuple[Snapshot, ...]
    engines: tuple[str, ...]
    service: str
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
    replicas = meta.replicas or _sub_folders(folder)
    service = folder.resolve().name or "service"
    if service in {replica.name for replica in replicas}:
        service = "service"
    observed = _replicated(folder, meta, replicas, service, step) if replicas else _single(folder, meta, service, step)
    return Recording(
        snapshots=_snapshots(folder, meta, replicas, observed, step),
        engines=tuple(replica.name for replica in replicas) or (service,),
        service=service,
        facts=meta.facts,
        slo=meta.slo,
        step_seconds=step,
        simulated=meta.simulated,
    )


def _sub_folders(folder: Path) -> tuple[Replica, ...]:
    """Sub-folders with scrapes, where the root has none of its own and ``meta.json`` names none."""
    if any(folder.glob("*.prom")):
        return ()
    return tuple(Replica(name=path.name) for path in sorted(folder.iterdir()) if any(path.glob("*.prom")))


def _single(folder: Path, meta: Meta, service: str, step: float) -> list[tuple[Observed, ...]]:
    files = scrape_files(folder)
    target = EngineTarget(engine=service, url="", facts=meta.facts, slo=meta.slo, gpus=meta.gpus)
    return [read_engine(target, files, tuple(files), step)]


def _replicated(
    folder: Path, meta: Meta, replicas: Sequence[Replica], service: str, step: float
) -> list[tuple[Observed, ...]]:
    files = {replica.name: scrape_files(folder / replica.name) for replica in replicas}
    steps = sorted({name for own in files.values() for name in own})
    alone = replace(meta.facts, data_parallel_size=None)  # what meta.json says of replicas is about the service
    parts = {
        replica.name: read_engine(
            EngineTarget(engine=replica.name, url="", facts=alone, slo=meta.slo, gpus=replica.gpus),
            files[replica.name],
            steps,
            step,
        )
        for replica in replicas
    }
    gpus = meta.gpus or tuple(dict.fromkeys(gpu for replica in replicas for gpu in replica.gpus))
    target = EngineTarget(engine=service, url="", facts=meta.facts, slo=meta.slo, gpus=gpus)
    return [*parts.values(), read_service(target, parts)]


def _snapshots(
    folder: Path, meta: Meta, replicas: Sequence[Replica], observed: list[tuple[Observed, ...]], step: float
) -> tuple[Snapshot, ...]:
    folders = (folder, *(folder / replica.name for replica in replicas))
    gpus = [read_gpus(place / "gpu.jsonl") for place in folders]
    hosts = read_hosts(folder / "host.jsonl")
    probes = read_probes(folder / "probe.jsonl")

    def snapshot(number: int, engines: tuple[Observed, ...]) -> Snapshot:
        at = number * step
        latest = (series.at(at, PROBE_FRESH_SECONDS) for series in probes.values())
        return Snapshot(
            at=at,
            gpus=_gpus_at(gpus, at, FRESH_STEPS * step),
            engines=tuple(seen for seen in engines if isinstance(seen, EngineReading)),
            probes=tuple(probe for probe in latest if probe is not None),
            host=hosts.at(at, FRESH_STEPS * step),
            links=meta.links,
            absences=tuple(seen for seen in engines if isinstance(seen, Absence)),
        )

    return tuple(snapshot(number, engines) for number, engines in enumerate(zip(*observed, strict=True)))


def _gpus_at(places: list[Series[tuple[GpuReading, ...]]], at: float, not_older_than: float) -> tuple[GpuReading, ...]:
    """Each GPU once: the root's line speaks before a sub-folder's that repeats it."""
    found: dict[str, GpuReading] = {}
    for place in places:
        for reading in place.at(at, not_older_than) or ():
            found.setdefault(reading.uuid, reading)
    return tuple(found.values())
