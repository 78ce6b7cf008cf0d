"""Engines in containers, seen from the host: Docker's proxy that listens for them, and whose processes are in one.

Formats: docker-proxy's command line, cgroups(7), the container ids of the engines' cgroup paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import PurePosixPath

from pinchpoint.sources.process.listening import Address, Listening, best, listening
from pinchpoint.sources.process.proc import Proc

MAX_NAMESPACES = 1024
_CONTAINER = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_UNIT = re.compile(r"/([^/\n]+\.service)$", re.MULTILINE)


def container_of(cgroups: str) -> str:
    """The id of the container; of one inside another, its own. Empty outside of any."""
    found = _CONTAINER.findall(cgroups)
    return found[-1] if found else ""


def unit_of(cgroups: str) -> str:
    """The systemd service; empty outside of any, and in a container."""
    found = _UNIT.search(cgroups)
    return found[1] if found and not container_of(cgroups) else ""


def in_container(proc: Proc, container: str) -> tuple[int, ...]:
    return tuple(pid for pid in proc.pids() if container_of(proc.cgroups(pid)) == container)


def behind_proxy(arguments: tuple[str, ...]) -> tuple[Address, int] | None:
    """Where ``docker-proxy`` leads: the container's address and port; ``None`` for any other process."""
    if not arguments or PurePosixPath(arguments[0]).name != "docker-proxy":
        return None
    given = dict(zip(arguments[1::2], arguments[2::2], strict=False))
    try:
        return ip_address(given.get("-container-ip", "")), int(given.get("-container-port", ""))
    except ValueError:
        return None


def socket_in_container(proc: Proc, address: Address, port: int) -> tuple[Listening, tuple[int, ...]] | None:
    """What listens at a container's address, and the processes of its network namespace."""
    for pids in _namespaces(proc, proc.pids()):
        folder = f"{proc.root}/{pids[0]}/net"
        if str(address) in _addresses(folder) and (socket := best(listening(folder), (address,), port)):
            return socket, pids
    return None


def _namespaces(proc: Proc, pids: Iterable[int]) -> list[tuple[int, ...]]:
    """Processes by the network namespace that they are in; those that hide theirs are left out, as is our own."""
    found: dict[str, list[int]] = {}
    for pid in pids:
        if namespace := proc.link(f"{pid}/ns/net"):
            found.setdefault(namespace, []).append(pid)
    found.pop(proc.link("self/ns/net"), None)
    return [tuple(members) for members in found.values()][:MAX_NAMESPACES]


def _addresses(folder: str) -> frozenset[str]:
    """The IPv4 addresses of a namespace: the leaves "host LOCAL" of its routing trie."""
    try:
        with open(f"{folder}/fib_trie", encoding="ascii", errors="replace") as file:
            text = file.read(2**20)
    except OSError:
        return frozenset()
    return frozenset(re.findall(r"\|-- ([\d.]+)\s+/32 host LOCAL", text))
