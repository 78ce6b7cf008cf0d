"""Who listens: the TCP sockets of a network namespace, from the kernel's tables /proc/net/tcp and tcp6."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

MAX_LISTENERS = 65_536
_LISTENS = "0A"

Address = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Listening:
    """One listening socket. ``user`` is whose process made it."""

    address: Address
    port: int
    user: int
    inode: int

    def hears(self, address: Address) -> bool:
        """Whether a connection to ``address`` may come to it: bound to that, or to all."""
        same_family = self.address.version == address.version
        return self.address == address or (self.address.is_unspecified and (same_family or self.address.version == 6))


def listening(namespace: str) -> tuple[Listening, ...]:
    """The listening sockets of the namespace whose ``net`` folder is given, e.g. ``/proc/net``. Raises nothing."""
    return tuple(socket for table in ("tcp", "tcp6") for socket in _table(f"{namespace}/{table}"))


def _table(path: str) -> Iterator[Listening]:
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            next(lines, "")
            for number, line in enumerate(lines):
                columns = line.split()
                # Those that listen come first; the connections behind them may be a hundred thousand.
                if len(columns) < 10 or columns[3] != _LISTENS or number >= MAX_LISTENERS:
                    return
                try:
                    address, _, port = columns[1].partition(":")
                    yield Listening(_address(address), int(port, 16), int(columns[7]), int(columns[9]))
                except ValueError:
                    return
    except OSError:
        return


def _address(text: str) -> Address:
    """Words of 32 bits, each in this machine's byte order; an IPv4 address as IPv6 has it is that."""
    raw = b"".join(int(text[at : at + 8], 16).to_bytes(4, "little") for at in range(0, len(text), 8))
    address = ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def best(sockets: Iterable[Listening], addresses: Iterable[Address], port: int) -> Listening | None:
    """The socket that a connection to one of ``addresses`` at ``port`` comes to; bound to the address beats to all."""
    wanted = tuple(addresses)
    heard = [s for s in sockets if s.port == port and any(s.hears(address) for address in wanted)]
    return min(heard, key=lambda s: (s.address not in wanted, s.address.version), default=None)
