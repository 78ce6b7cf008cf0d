"""Writes ticks into a folder."""

import json
import re
from collections.abc import Container
from dataclasses import asdict
from itertools import chain, count
from pathlib import Path
from typing import Any

import structlog

from pinchpoint.outputs.recorder.scrape import scrape_text
from pinchpoint.snapshot import EngineReading, GpuReading, GpuState, Snapshot

log = structlog.get_logger(__name__)

TIMES = ("at", "last_success_at")  # on this process's clock
MAX_BYTES = 2**30  # a GiB: about half a day of four engines and eight GPUs at a step of 5 s


class Recorder:
    """Records one snapshot per ``step_seconds`` into ``folder``: a sub-folder of scrapes per engine, ``meta.json``, and
    ``gpu.jsonl``, ``host.jsonl`` and ``probe.jsonl`` where there is something to say.

    ``write`` blocks on the disk: call it in a thread, one call at a time. A disk that fails is one line in the log, and
    one when it works again; past ``max_bytes`` nothing more is written. The folder must be new or empty, lest two
    recordings mix: ``FileExistsError`` otherwise.
    """

    def __init__(
        self, folder: Path, step_seconds: float, *, simulated: bool = False, max_bytes: int = MAX_BYTES
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(f"{folder}: is not empty; name a new folder to record into")
        self._folder = folder
        self._step_seconds = step_seconds
        self._simulated = simulated
        self._bytes_left = max_bytes
        self._start: float | None = None
        self._step = 0
        self._engines: dict[str, EngineReading] = {}  # by folder: the first reading of each
        self._folders: dict[str, str] = {}  # by engine
        self._probed: dict[str, float] = {}
        self._failing = False

    def write(self, snapshot: Snapshot) -> None:
        """Records ``snapshot`` if its step has come."""
        if self._start is None:
            self._start = snapshot.at
        seconds = snapshot.at - self._start
        if self._bytes_left <= 0 or seconds < self._step * self._step_seconds - self._step_seconds / 4:
            return
        self._step = max(self._step, round(seconds / self._step_seconds))
        try:
            self._record(snapshot, self._step * self._step_seconds)
        except OSError as error:
            if not self._failing:
                log.error("Recording fails", folder=str(self._folder), error=str(error))
            self._failing = True
        else:
            if self._failing:
                log.info("Recording works again", folder=str(self._folder))
            self._failing = False
        self._step += 1
        if self._bytes_left <= 0:
            log.warning("Recording ended: it is as large as it may be", folder=str(self._folder))

    def _record(self, snapshot: Snapshot, t: float) -> None:
        new = [reading for reading in snapshot.engines if reading.engine not in self._folders]
        for reading in new:
            folder = self._folders[reading.engine] = _unused(folder_name(reading.engine), self._engines)
            self._engines[folder] = reading
        if new or t == 0:
            self._put(self._folder / "meta.json", json.dumps(self._meta(snapshot), indent=1))
        for reading in snapshot.engines:
            self._put(self._folder / self._folders[reading.engine] / f"{self._step:06d}.prom", scrape_text(reading))
        if snapshot.gpus:
            self._add("gpu.jsonl", {"t": t, "gpus": [_gpu(gpu) for gpu in snapshot.gpus]})
        if snapshot.host is not None:
            self._add("host.jsonl", {"t": t, **_known(snapshot.host)})
        for probe in snapshot.probes:
            if self._probed.get(probe.target) != probe.at:
                self._add("probe.jsonl", {"t": t, **_known(probe)})
                self._probed[probe.target] = probe.at

    def _meta(self, snapshot: Snapshot) -> dict[str, Any]:
        first = next(iter(self._engines.values()), None)
        described = {} if first is None else {"engine": _known(first.facts), "slo": _known(first.slo)}
        engines = [{"name": folder, "gpus": list(reading.gpus)} for folder, reading in self._engines.items()]
        links = [asdict(link) for link in snapshot.links]
        return {
            "step_seconds": self._step_seconds,
            "simulated": self._simulated,
            **described,
            "engines": engines,
            "links": links,
        }

    def _put(self, file: Path, text: str) -> None:
        file.parent.mkdir(exist_ok=True)
        self._bytes_left -= file.write_bytes(text.encode("utf-8", "replace"))

    def _add(self, name: str, line: dict[str, Any]) -> None:
        with (self._folder / name).open("ab") as file:
            self._bytes_left -= file.write(json.dumps(line, allow_nan=False).encode() + b"\n")


def folder_name(engine: str) -> str:
    """An engine's name (text from outside) as a folder's: no separator, no leading dot, not too long."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", engine)[:100].lstrip(".") or "engine"


def _unused(folder: str, used: Container[str]) -> str:
    """``folder``, or with the first number behind it that makes it unlike the others."""
    names = chain((folder,), (f"{folder}-{number}" for number in count(2)))
    return next(name for name in names if name not in used)


def _known(reading: Any) -> dict[str, Any]:
    """A reading's fields without the time, and without what is unknown or empty."""
    return {
        name: value for name, value in asdict(reading).items() if name not in TIMES and value not in (None, "", {}, ())
    }


def _gpu(gpu: GpuReading) -> dict[str, Any]:
    """A line's entry of one GPU; that it is well goes without saying."""
    entry = _known(gpu)
    if gpu.up and gpu.state is GpuState.OK:
        del entry["up"], entry["state"]
    return entry
