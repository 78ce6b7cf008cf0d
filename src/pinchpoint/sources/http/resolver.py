"""Host names, looked up in threads of their own."""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

from aiohttp.abc import AbstractResolver, ResolveResult

MAX_LOOKUPS = 8  # at one time


class Resolver(AbstractResolver):
    """The system's resolver. While a name server hangs, each look-up holds a thread for ten seconds or more.

    aiohttp's own takes them from the loop's few, in which files are read and ``/metrics`` is rendered.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_LOOKUPS, thread_name_prefix="dns")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await asyncio.get_running_loop().run_in_executor(
            self._threads, socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
        )
        return [
            ResolveResult(
                hostname=host,
                host=_with_zone(address),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _with_zone(address: tuple[object, ...]) -> str:
    """A link-local IPv6 address is none without the number of its interface."""
    zone = address[3] if len(address) == 4 else 0
    return f"{address[0]}%{zone}" if zone else str(address[0])
