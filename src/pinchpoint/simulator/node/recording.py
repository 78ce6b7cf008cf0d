"""A scenario as a recording: what a node would have shown, in a folder that a replay reads."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pinchpoint.simulator.node.machine import SimulatedMachine
from pinchpoint.simulator.serving.exposition import render
from pinchpoint.snapshot import GpuReading, HostReading, Slo

_UNIX_EPOCH = 1_800_000_000.0  # a fixed date: the same seed gives the same files


def write_recording(
    folder: Path,
    scenario: str,
    seconds: float = 120.0,
    step_seconds: float = 1.0,
    seed: int = 0,
    warmup_seconds: float = 30.0,
) -> None:
    """Play ``scenario`` and write the engine it happens to: ``NNN.prom``, ``meta.json``, ``gpu.jsonl``, ``host.jsonl``.

    The first ``warmup_seconds`` are played but not written. Time is virtual: two minutes take well under a second.
    """
    machine = SimulatedMachine(seed, scenario)
    engine = machine.engines[machine.scenario.engine]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(json.dumps(_meta(machine, step_seconds), indent=1) + "\n")
    steps = round(seconds / step_seconds) + 1
    digits = max(3, len(str(steps)))
    with (folder / "gpu.jsonl").open("w") as gpus, (folder / "host.jsonl").open("w") as hosts:
        for step in range(steps):
            t = step * step_seconds
            machine.advance_to(warmup_seconds + t)
            (folder / f"{step:0{digits}}.prom").write_text(render(engine, _UNIX_EPOCH))
            readings = [_line(reading) for reading in machine.gpu_readings(t)]
            gpus.write(json.dumps({"t": t, "gpus": readings}) + "\n")
            hosts.write(json.dumps({"t": t, **_line(machine.host)}) + "\n")


def _meta(machine: SimulatedMachine, step_seconds: float) -> dict[str, Any]:
    spec = machine.engines[machine.scenario.engine].spec
    return {
        "step_seconds": step_seconds,
        "simulated": True,
        "engine": asdict(spec.facts()),
        "slo": asdict(Slo()),
        "gpus": list(spec.gpus),
        "links": [asdict(link) for link in machine.links],
        "note": machine.scenario.story,
    }


def _line(reading: GpuReading | HostReading) -> dict[str, Any]:
    """Known fields only: what is missing is unknown."""
    names = (field.name for field in fields(reading) if field.name not in ("at", "state"))
    values = {name: getattr(reading, name) for name in names}
    known = {name: value for name, value in values.items() if value not in (None, {}, (), "")}
    return {**known, "up": 1} if isinstance(reading, GpuReading) else known
