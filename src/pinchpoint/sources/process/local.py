"""Which targets are on this host."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

import psutil

from pinchpoint.sources.process.listening import Address

_LOOPBACK = (ip_address("127.0.0.1"), ip_address("::1"))


def own_addresses() -> frozenset[Address]:
    """The addresses of this host's interfaces, as this network namespace has them."""
    texts = (each.address.partition("%")[0] for card in psutil.net_if_addrs().values() for each in card)
    return frozenset(address for text in texts if (address := _address(text)))


def where(url: str, own: frozenset[Address]) -> tuple[Address, ...]:
    """The addresses of this host that ``url`` may lead to; none where it leads elsewhere. Asks no name server."""
    host = (urlsplit(url).hostname or "").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return _LOOPBACK
    if host and host == socket.gethostname().lower():
        return (*_LOOPBACK, *own)
    address = _address(host)
    return (address,) if address and (address.is_loopback or address in own) else ()


def port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def _address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:  # a name, or a hardware address
        return None
