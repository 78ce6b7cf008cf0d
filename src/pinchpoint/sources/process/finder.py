"""Finds the processes of engines on this host: URL → listening socket → process → the engine's root, and its log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pinchpoint.snapshot import EngineProcess, EngineTarget
from pinchpoint.sources.process import local
from pinchpoint.sources.process.arguments import port_of
from pinchpoint.sources.process.command import command_of
from pinchpoint.sources.process.containers import behind_proxy, socket_in_container
from pinchpoint.sources.process.described import described
from pinchpoint.sources.process.listening import Address, Listening, best, listening
from pinchpoint.sources.process.log import StartupLogs
from pinchpoint.sources.process.proc import Holders, Proc
from pinchpoint.sources.process.tree import Parents, root_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """``processes`` by engine, of those that were found (``pid`` 0: its log alone); ``living`` are all there were."""

    processes: Mapping[str, EngineProcess] = field(default_factory=dict)
    living: frozenset[int] = frozenset()


class ProcessFinder:
    """Looks at engines on this host. Reads files, and may hang with a process that hangs: for a thread of its own."""

    def __init__(
        self,
        proc: Path = Path("/proc"),
        *,
        addresses: Callable[[], frozenset[Address]] = local.own_addresses,
        own_pid: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._proc = Proc(proc)
        self._addresses = addresses
        self._own_pid = os.getpid() if own_pid is None else own_pid
        self._clock = clock
        self._logs = StartupLogs(self._proc)
        self._held: Holders = {}  # of each socket who had it when last looked for
        self._described: dict[tuple[int, tuple[int, ...]], EngineProcess] = {}  # in this look

    def look(self, targets: Iterable[EngineTarget]) -> Looked:
        """The processes behind ``targets``, as far as they are on this host and let themselves be seen.

        Raises nothing. A target elsewhere is not looked for; one whose log the operator named is read all the same.
        """
        own = self._addresses()
        here = [(target, local.where(target.url, own)) for target in targets]
        here = [(target, addresses) for target, addresses in here if addresses or target.log_file or target.log_unit]
        if not here:
            return Looked()
        parents = self._proc.parents()
        sockets = listening(f"{self._proc.root}/self/net")
        heard = {t.engine: best(sockets, addresses, local.port(t.url)) for t, addresses in here}
        holders = self._holders({each.inode for each in heard.values() if each})
        found: dict[str, EngineProcess] = {}
        self._described = {}
        for target, _ in here:
            at = heard[target.engine]
            process = self._process(at, holders.get(at.inode, ()), parents) if at else None
            log = self._logs.facts(process, target, self._clock())
            if process is None and log.known():
                process = EngineProcess(pid=0)
            if process is not None:
                found[target.engine] = replace(process, facts=process.facts.completed(log, "log"))
        return Looked(processes=found, living=frozenset(parents))

    def _holders(self, inodes: set[int]) -> Holders:
        """Who has these sockets open. A search goes through every descriptor of the host, so an answer that still holds
        is kept, also that nobody shows himself."""
        kept = {
            inode: who
            for inode, who in self._held.items()
            if inode in inodes and all(self._proc.link(path) == f"socket:[{inode}]" for _, path in who)
        }
        missing = inodes - kept.keys()
        new = self._proc.holders(missing, self._proc.pids()) if missing else {}
        self._held = {**dict.fromkeys(missing, ()), **kept, **new}
        return self._held

    def _process(self, heard: Listening, who: Iterable[tuple[int, str]], parents: Parents) -> EngineProcess | None:
        pids = tuple(pid for pid, _ in who) or self._by_words(heard, parents)
        root = root_of(pids, parents, self._is_engine)
        if root is None or self._own_pid in (root, *pids):
            return None
        if (beyond := behind_proxy(self._proc.arguments(root))) is not None:
            inside = socket_in_container(self._proc, *beyond)
            found = self._proc.holders({inside[0].inode}, inside[1]) if inside else {}
            pids = tuple(pid for holders in found.values() for pid, _ in holders)
            root = root_of(pids, parents, self._is_engine)
        if root is None:
            return None
        if (root, pids) not in self._described:  # one server may listen on many ports
            self._described[root, pids] = described(self._proc, root, pids, parents)
        return self._described[root, pids]

    def _by_words(self, heard: Listening, parents: Parents) -> tuple[int, ...]:
        """Where descriptors are hidden: the one engine of the socket's user whose command line names the port."""
        own = [pid for pid in parents if self._proc.user(pid) == heard.user]
        lines = {pid: command_of(self._proc.arguments(pid)) for pid in own}
        named = [pid for pid, command in lines.items() if command.kind and port_of(command) == heard.port]
        roots = [pid for pid in named if parents.get(pid) not in named]
        return tuple(roots) if len(roots) == 1 else ()

    def _is_engine(self, pid: int) -> bool:
        return command_of(self._proc.arguments(pid)).kind != ""
