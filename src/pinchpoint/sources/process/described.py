"""From an engine's root process to what is told of it: command line, tree, replicas."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable

from pinchpoint.snapshot import EngineFacts, EngineProcess
from pinchpoint.sources.process.arguments import config_file, facts_of
from pinchpoint.sources.process.command import command_of
from pinchpoint.sources.process.containers import container_of, in_container
from pinchpoint.sources.process.options import OPTIONS
from pinchpoint.sources.process.proc import Proc
from pinchpoint.sources.process.tree import Parents, by_replica, is_title, tree_of

MAX_CONFIG_BYTES = 65_536


def described(proc: Proc, root: int, holders: Iterable[int], parents: Parents) -> EngineProcess:
    """The engine of ``root``; ``holders`` have its socket."""
    facts = EngineFacts()
    for pid in dict.fromkeys((root, *holders)):  # a launcher's words, then what it made of them for its server
        facts = facts.completed(_said(proc, pid), "command_line")
    tree = tree_of(root, parents)
    if container := container_of(proc.cgroups(root)):  # Ray's workers, for one, are nobody's children
        tree = tuple(sorted({*tree, *in_container(proc, container)}))
    # Only a process that bears a title is asked for all of it: a command line is behind a lock.
    titled = [pid for pid in tree if "::" in proc.command(pid)]
    titles = {pid: title for pid in titled if is_title(title := " ".join(proc.arguments(pid)[:1]))}
    return EngineProcess(pid=root, facts=facts, pids=tree, pids_by_replica=by_replica(titles, tree, parents))


def _said(proc: Proc, pid: int) -> EngineFacts:
    command = command_of(proc.arguments(pid))
    if not command.kind:
        return EngineFacts()
    wanted = OPTIONS[command.kind].variables
    path = config_file(command)
    return facts_of(
        command, proc.environment(pid, wanted.keys()) if wanted else {}, _config(proc, pid, path) if path else ""
    )


def _config(proc: Proc, pid: int, path: str) -> str:
    """The file as the process sees it, from its folder or its root; empty where it can't be read, or is too large."""
    seen = f"{proc.root}/{pid}/{'root' if path.startswith('/') else 'cwd'}/{path.lstrip('/')}"
    try:
        descriptor = os.open(seen, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_CONFIG_BYTES:
                return ""
            return file.read(MAX_CONFIG_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
