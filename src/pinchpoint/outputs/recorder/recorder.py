"""Writes ticks into a folder."""

import errno
import json
import os
import re
from collections import deque
from collections.abc import Container, Mapping
from itertools import chain, count
from pathlib import Path
from typing import Any

import structlog

from pinchpoint.outputs.recorder.described import described, gpu_line, known
from pinchpoint.outputs.recorder.scrape import absence_text, scrape_text
from pinchpoint.snapshot import Absence, EngineReading, PeerLink, ProbeReading, Reason, Snapshot

log = structlog.get_logger(__name__)

FILES = ("meta.json", "gpu.jsonl", "host.jsonl", "probe.jsonl")
MAX_BYTES = 2**30  # a GiB: about half a day of four engines and eight GPUs at a step of 5 s
MAX_STEPS = 100_000  # what a replay reads: almost six days at a step of 5 s
JITTER_SECONDS = 0.25  # a tick may come a little before its step
WAITING_SCRAPES = 2  # scrapes drift against the steps: two may fall between two of them, and the next step has none


class Recorder:
    """Records into ``folder`` every ``step_seconds``: a sub-folder per engine with what its newest scrape said or why
    there is none, ``meta.json``, and ``gpu.jsonl``, ``host.jsonl`` and ``probe.jsonl`` where there is something to say.

    Let a step be as long as the pause between two scrapes: then each scrape is written once, with its own time in it. A
    recording begins with the first tick in which every engine has been asked. ``write`` takes every tick and blocks on
    the disk: call it in a thread, one call at a time. A disk that fails is one line in the log, and one when it works
    again; past ``max_bytes`` nothing more is written. The folder must be new or empty, lest two recordings mix:
    ``FileExistsError`` otherwise.
    """

    def __init__(
        self, folder: Path, step_seconds: float, *, simulated: bool = False, max_bytes: int = MAX_BYTES
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(errno.EEXIST, "is not empty", str(folder))
        self._folder = folder
        self._step_seconds = step_seconds
        self._simulated = simulated
        self._bytes_left = max_bytes
        self._start: float | None = None
        self._step = 0
        self._folders: dict[str, str] = {}  # by engine
        self._first: dict[str, EngineReading] = {}  # by engine, or a later one that knew more of it
        self._seen: dict[str, float] = {}  # when the newest scrape of each engine was made
        self._waiting: dict[str, deque[EngineReading]] = {}
        self._probed: dict[str, float] = {}
        self._probes: list[tuple[float, ProbeReading]] = []
        self._links: tuple[PeerLink, ...] = ()
        self._failing = False

    def write(self, snapshot: Snapshot) -> None:
        """Takes note of what is new in ``snapshot``, and records it if its step has come."""
        if self._ended() or (self._start is None and _is_starting(snapshot)):
            return
        start = self._start = snapshot.at if self._start is None else self._start
        seconds = snapshot.at - start
        self._take_note(snapshot, seconds)
        if seconds < self._step * self._step_seconds - min(JITTER_SECONDS, self._step_seconds / 4):
            return
        self._step = max(self._step, round(seconds / self._step_seconds))
        try:
            self._record(snapshot, start)
        except OSError as error:
            if not self._failing:
                log.error("Recording fails", folder=str(self._folder), error=str(error))
            self._failing = True
        else:
            if self._failing:
                log.info("Recording works again", folder=str(self._folder))
            self._failing = False
        self._step += 1
        if self._ended():
            log.warning("Recording ended: it is as large as it may be", folder=str(self._folder))

    def _ended(self) -> bool:
        return self._bytes_left <= 0 or self._step >= MAX_STEPS

    def _take_note(self, snapshot: Snapshot, seconds: float) -> None:
        for reading in snapshot.engines:
            if self._seen.get(reading.engine) != reading.at:
                self._seen[reading.engine] = reading.at
                self._waiting.setdefault(reading.engine, deque(maxlen=WAITING_SCRAPES)).append(reading)
        for probe in snapshot.probes:
            if self._probed.get(probe.target) != probe.at:
                self._probed[probe.target] = probe.at
                self._probes.append((seconds, probe))

    def _record(self, snapshot: Snapshot, start: float) -> None:
        t = self._step * self._step_seconds
        probes, self._probes = self._probes, []
        states = _states(snapshot)
        self._describe(snapshot, states)
        for engine, state in states.items():
            waiting = self._waiting.get(engine)
            state = waiting.popleft() if waiting else state  # noqa: PLW2901 - the older scrape first, none is lost
            text = absence_text(state, start) if isinstance(state, Absence) else scrape_text(state, start)
            self._put(self._folder / self._folders[engine] / f"{self._step:06d}.prom", text)
        if snapshot.gpus:
            self._add("gpu.jsonl", {"t": t, "gpus": [gpu_line(gpu) for gpu in snapshot.gpus]})
        if snapshot.host is not None:
            self._add("host.jsonl", {"t": t, **known(snapshot.host)})
        for seconds, probe in probes:
            behind = {} if probe.engine is None else {"engine": self._folders.get(probe.engine, probe.engine)}
            self._add("probe.jsonl", {"t": round(seconds, 3), **known(probe), **behind})

    def _describe(self, snapshot: Snapshot, states: Mapping[str, EngineReading | Absence]) -> None:
        """Writes ``meta.json`` anew when there is more to say in it."""
        new = [engine for engine in states if engine not in self._folders]
        for engine in new:
            self._folders[engine] = _unused(folder_name(engine), {*FILES, *self._folders.values()})
        told = [reading for reading in snapshot.engines if _says_more(reading, self._first.get(reading.engine))]
        self._first.update({reading.engine: reading for reading in told})
        if new or told or self._step == 0 or snapshot.links not in (self._links, ()):
            self._links = snapshot.links
            meta = described(self._folders, self._first, self._links)
            whole = {"step_seconds": self._step_seconds, "simulated": self._simulated, **meta}
            self._put(self._folder / "meta.json", json.dumps(whole, indent=1))

    def _put(self, file: Path, text: str) -> None:
        """All of the file or nothing of it."""
        file.parent.mkdir(exist_ok=True)
        try:
            self._bytes_left -= file.write_bytes(text.encode("utf-8", "replace"))
        except OSError:
            file.unlink(missing_ok=True)
            raise

    def _add(self, name: str, line: dict[str, Any]) -> None:
        """All of the line or nothing of it: half a line, left by a full disk, would spoil the whole file."""
        text = json.dumps(line, allow_nan=False).encode() + b"\n"
        with (self._folder / name).open("ab", buffering=0) as file:
            before = file.tell()
            if file.write(text) < len(text):
                file.truncate(before)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._bytes_left -= len(text)


def _states(snapshot: Snapshot) -> dict[str, EngineReading | Absence]:
    """Each engine's reading, or why there is none, in name order."""
    found = {name: snapshot.engine(name) or snapshot.absence(f"engine/{name}") for name in snapshot.engine_names()}
    return {name: state for name, state in found.items() if state is not None}


def _is_starting(snapshot: Snapshot) -> bool:
    return any(a.reason is Reason.STARTING and a.source.startswith("engine/") for a in snapshot.absences)


def folder_name(engine: str) -> str:
    """An engine's name (text from outside) as a folder's: no separator, no leading dot, not too long."""
    return re.sub(r"[^A-Za-z0-9._:-]", "_", engine)[:100].lstrip(".") or "engine"


def _says_more(reading: EngineReading, before: EngineReading | None) -> bool:
    """Whether more is known of the engine's configuration: what its process says comes after its first scrape."""
    if before is None:
        return True
    return len(reading.facts.known()) > len(before.facts.known()) or len(reading.gpus) > len(before.gpus)


def _unused(folder: str, used: Container[str]) -> str:
    """``folder``, or with the first number behind it that makes it unlike the others."""
    names = chain((folder,), (f"{folder}-{number}" for number in count(2)))
    return next(name for name in names if name not in used)
