"""A world as a recording: what a node would have shown, in a folder that a replay reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TextIO

from pinchpoint.simulator.node.service import Service
from pinchpoint.simulator.serving.exposition import render
from pinchpoint.simulator.world import World
from pinchpoint.snapshot import GpuReading, HostReading, ProbeReading

_UNIX_EPOCH = 1_800_000_000.0  # a fixed date: the same world gives the same files


def write_recording(
    folder: Path,
    world: World,
    seconds: float = 120.0,
    step_seconds: float = 1.0,
    warm_up_seconds: float = 30.0,
) -> Service:
    """Play ``world`` and write down what it shows; returns it as played.

    The first ``warm_up_seconds`` are played but not written. Replicas are one server's engine cores or, of every second
    seed, servers of their own in a folder each. Time is virtual: two minutes take well under a second.
    """
    service = Service(world)
    apart = world.replicas > 1 and world.seed % 2 == 1
    names = [engine.spec.name for engine in service.engines] if apart else [""]
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(json.dumps(_meta(service, step_seconds, apart=apart), indent=1) + "\n")
    steps = round(seconds / step_seconds) + 1
    digits = max(3, len(str(steps)))
    with ExitStack() as files:
        gpus, hosts = (files.enter_context((folder / name).open("w")) for name in ("gpu.jsonl", "host.jsonl"))
        for step in range(steps):
            t = step * step_seconds
            service.advance_to(warm_up_seconds + t)
            _write(gpus, t, {"gpus": [_line(reading) for reading in service.gpu_readings(t)]})
            _write(hosts, t, _line(service.host))
            _write_scrapes(folder, f"{step:0{digits}}.prom", service, apart=apart)
    with (folder / "probe.jsonl").open("w") as probes:
        for reading in service.probes():
            if reading.at >= warm_up_seconds:
                _write(probes, round(reading.at - warm_up_seconds, 3), _line(reading))
    return service


def _write(file: TextIO, t: float, line: dict[str, Any]) -> None:
    file.write(json.dumps({"t": t, **line}) + "\n")


def _write_scrapes(folder: Path, name: str, service: Service, *, apart: bool) -> None:
    """A server that has ended shows nothing; one of several engine cores ends with the first of them."""
    if apart:
        for index, engine in enumerate(service.engines):
            if index not in service.dead:
                (folder / engine.spec.name / name).write_text(render([engine], _UNIX_EPOCH))
    elif not service.dead:
        (folder / name).write_text(render(service.engines, _UNIX_EPOCH))


def _meta(service: Service, step_seconds: float, *, apart: bool) -> dict[str, Any]:
    world = service.world
    replicas = [{"name": engine.spec.name, "gpus": list(engine.spec.gpus)} for engine in service.engines]
    return {
        "step_seconds": step_seconds,
        "simulated": True,
        "numbered": True,
        "engine": {name: value for name, value in asdict(service.facts()).items() if name != "origins"},
        "slo": asdict(world.slo),
        "gpus": list(service.cards),
        **({"engines": replicas} if apart else {}),
        "links": [asdict(link) for link in service.links],
        "note": world.story,
    }


def _line(reading: GpuReading | HostReading | ProbeReading) -> dict[str, Any]:
    """Known fields only: what is missing is unknown."""
    names: Iterable[str] = (field.name for field in fields(reading) if field.name not in ("at", "state"))
    values = {name: getattr(reading, name) for name in names}
    known = {name: value for name, value in values.items() if value not in (None, {}, (), "")}
    if isinstance(reading, GpuReading):
        known["up"] = int(reading.up)
    return known
