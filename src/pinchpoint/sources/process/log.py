"""Finds an engine's start-up log, reads it, and remembers what it said: a start is not said twice."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from pinchpoint.snapshot import EngineFacts, EngineProcess, EngineTarget
from pinchpoint.sources.process.containers import container_of, unit_of
from pinchpoint.sources.process.journal import facts_of_unit
from pinchpoint.sources.process.log_file import facts_of_file, is_regular
from pinchpoint.sources.process.proc import Proc

LOADING_SECONDS = 3600.0  # a large model takes its time; later a log that has said nothing says nothing more
AGAIN_SECONDS = 300.0
MAX_REMEMBERED = 4096
_NOTHING = EngineFacts()
_DOCKER = "/var/lib/docker/containers/{0}/{0}-json.log"

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a log is looked for: one run of one engine (process id and start), or what the operator named."""

    pid: int
    started: int
    file: str
    unit: str


@dataclass(frozen=True, slots=True)
class _Heard:
    facts: EngineFacts
    at: float


class StartupLogs:
    """The logs of this host's engines. Used by one thread at a time; reads files and runs ``journalctl``."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._heard: dict[_Place, _Heard] = {}
        self._unreadable: set[str] = set()

    def facts(self, process: EngineProcess | None, target: EngineTarget, now_unix: float) -> EngineFacts:
        """What the log of ``target`` says: where the operator named it, that, else where its ``process`` writes: its
        output if that is a file, its systemd unit's journal, its Docker container's file."""
        pid = process.pid if process else 0
        place = _Place(pid, (self._proc.started_ticks(pid) or 0) if pid else 0, target.log_file, target.log_unit)
        started = self._proc.started_unix(pid) if pid else None
        heard = self._heard.get(place)
        if heard is None or not _is_all(heard, started, now_unix):
            if len(self._heard) > MAX_REMEMBERED:
                self._heard.clear()
            heard = self._heard[place] = _Heard(self._read(process, target, started), now_unix)
        return heard.facts

    def _read(self, process: EngineProcess | None, target: EngineTarget, started: float | None) -> EngineFacts:
        # The numbers by which its processes stamp their lines: those of their own namespace.
        pids = frozenset(n for pid in (process.pids if process else ()) for n in self._proc.own_numbers(pid))
        try:
            if target.log_file:
                facts = facts_of_file(target.log_file, pids)
            elif target.log_unit:
                facts = facts_of_unit(target.log_unit, started, pids)
            else:
                return self._found(process.pid, pids, started) if process else _NOTHING
        except (OSError, ValueError) as error:
            if target.engine not in self._unreadable:
                self._unreadable.add(target.engine)
                log = target.log_file or target.log_unit
                _log.warning("start-up log can't be read", engine=target.engine, log=log, cause=str(error))
            return _NOTHING
        self._unreadable.discard(target.engine)
        return facts

    def _found(self, pid: int, pids: frozenset[int], started: float | None) -> EngineFacts:
        """Nobody said where it is, so that it can't be read is no complaint."""
        output = [path for path in (f"{self._proc.root}/{pid}/fd/{number}" for number in (1, 2)) if is_regular(path)]
        cgroups = self._proc.cgroups(pid)
        container, unit = container_of(cgroups), unit_of(cgroups)
        try:
            for path in output or ([_DOCKER.format(container)] if container else []):
                if (facts := facts_of_file(path, pids)).known():
                    return facts
            if unit and self._proc.link(f"{pid}/fd/1").startswith("socket:"):
                return facts_of_unit(unit, started, pids)
        except (OSError, ValueError):
            pass
        return _NOTHING


def _is_all(heard: _Heard, started: float | None, now_unix: float) -> bool:
    """Whether to read again would tell nothing new. Without a process, nobody tells of a new start but the log."""
    if started is None:
        return now_unix - heard.at < AGAIN_SECONDS
    return heard.facts.kv_cache_capacity_tokens is not None or heard.at - started > LOADING_SECONDS
