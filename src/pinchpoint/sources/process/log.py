"""Finds an engine's start-up log, reads it, and remembers what it said: a start is not said twice."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.process.containers import container_of, unit_of
from pinchpoint.sources.process.journal import facts_of_unit
from pinchpoint.sources.process.log_file import facts_of_file, is_regular
from pinchpoint.sources.process.proc import Proc
from pinchpoint.sources.process.tree import tree_of

LOADING_SECONDS = 3600.0  # a large model takes its time; later a log that has said nothing says nothing more
MAX_REMEMBERED = 4096
_NOTHING = EngineFacts(kind="")
_DOCKER = "/var/lib/docker/containers/{0}/{0}-json.log"

_log = structlog.get_logger(__name__)

Run = tuple[int, int]  # process id and start: one run of one engine


@dataclass(frozen=True, slots=True)
class _Heard:
    facts: EngineFacts
    at: float
    run: Run | None


class StartupLogs:
    """The logs of this host's engines. Used by one thread at a time; reads files and runs ``journalctl``."""

    def __init__(self, proc: Proc) -> None:
        self._proc = proc
        self._heard: dict[str, _Heard] = {}  # by engine
        self._unreadable: set[str] = set()

    def facts(self, engine: str, pid: int, file: str, unit: str, now_unix: float) -> EngineFacts:
        """What the log of ``engine`` says: of ``file`` or ``unit`` where the operator named one, else where its
        process ``pid`` (0: none) writes: its output if that is a file, its systemd unit, its Docker container."""
        started = self._proc.started_unix(pid) if pid else None
        run = (pid, self._proc.started_ticks(pid) or 0) if pid else None
        heard = self._heard.get(engine)
        if heard and heard.run == run and self._is_all(heard, started, now_unix):
            return heard.facts
        facts = self._read(engine, pid, file, unit, started)
        if len(self._heard) > MAX_REMEMBERED:
            self._heard.clear()
        self._heard[engine] = _Heard(facts, now_unix, run)
        return facts

    def _is_all(self, heard: _Heard, started: float | None, now_unix: float) -> bool:
        """Whether to read again would tell nothing new. Without a process, nobody tells a new start but the log."""
        if started is None:
            return now_unix - heard.at < 300.0
        return heard.facts.kv_cache_capacity_tokens is not None or heard.at - started > LOADING_SECONDS

    def _read(self, engine: str, pid: int, file: str, unit: str, started: float | None) -> EngineFacts:
        pids = self._names(pid) if pid else frozenset()
        try:
            if file:
                facts = facts_of_file(file, pids)
            elif unit:
                facts = facts_of_unit(unit, started, pids)
            else:
                return self._found(pid, pids, started) if pid else _NOTHING
        except (OSError, ValueError) as error:
            if engine not in self._unreadable:
                self._unreadable.add(engine)
                _log.warning("start-up log can't be read", engine=engine, log=file or unit, cause=str(error))
            return _NOTHING
        self._unreadable.discard(engine)
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

    def _names(self, root: int) -> frozenset[int]:
        """The numbers by which the engine's processes stamp their lines: those of their own namespace."""
        tree = tree_of(root, self._proc.parents())
        return frozenset(number for pid in tree for number in self._proc.own_numbers(pid))
