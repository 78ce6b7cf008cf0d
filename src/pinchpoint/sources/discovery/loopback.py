"""Finds vLLM servers on this host: asks the /metrics of each TCP port that listens on loopback."""

import asyncio
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

import aiohttp
import psutil
import structlog

from pinchpoint.snapshot import EngineTarget

MAX_PORTS = 256
MAX_BODY_BYTES = 2**20
AT_ONCE = 8
TIMEOUT_SECONDS = 1.0

# Services that never speak HTTP, and that log a stranger's request as an attack or a broken client.
NOT_HTTP = frozenset({21, 22, 23, 25, 53, 110, 111, 143, 389, 465, 587, 993, 995, 2049, 3306, 5432, 6379, 11211, 27017})

_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "127.0.0.1", "127.0.0.1": "127.0.0.1", "::1": "[::1]"}  # noqa: S104 - what others bind to
_VLLM_LINE = re.compile(rb"(?:^|\n)(?:# (?:HELP|TYPE) )?(?:ray_)?vllm[:_]")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Listener:
    """A listening TCP socket: the address it is bound to, and its port."""

    port: int
    address: str


def listeners() -> tuple[Listener, ...]:
    """Every TCP socket that listens on this host, or none where the system does not tell. Blocks for milliseconds."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError) as error:
        _log.warning("listening ports can't be read, no engine is found by itself", cause=str(error))
        return ()
    return tuple(Listener(c.laddr.port, c.laddr.ip) for c in connections if c.status == psutil.CONN_LISTEN and c.laddr)


async def find_engines(
    session: aiohttp.ClientSession,
    *,
    own_ports: Collection[int] = (),
    listening: Callable[[], Iterable[Listener]] = listeners,
) -> tuple[EngineTarget, ...]:
    """The vLLM servers that answer on loopback now, in port order, named like ``vllm-8000``.

    Asks a few ports at a time, each within a second and a megabyte, and only what listens: ``own_ports`` and ports of
    services that are no HTTP servers are left alone. A port that does not answer as vLLM is not an error.
    """
    bases: dict[int, str] = {}
    for listener in sorted(await asyncio.to_thread(lambda: tuple(listening()))):
        host = _HOSTS.get(listener.address)
        if host is not None and listener.port not in NOT_HTTP and listener.port not in own_ports:
            bases.setdefault(listener.port, f"http://{host}:{listener.port}")
    if len(bases) > MAX_PORTS:
        _log.warning("too many listening ports, only the lowest are asked", ports=len(bases), asked=MAX_PORTS)
    few = asyncio.Semaphore(AT_ONCE)
    asked = list(bases.items())[:MAX_PORTS]
    answers = await asyncio.gather(*(_is_vllm(session, url, few) for _, url in asked))
    return tuple(
        EngineTarget(engine=f"vllm-{port}", url=url) for (port, url), yes in zip(asked, answers, strict=True) if yes
    )


async def _is_vllm(session: aiohttp.ClientSession, url: str, few: asyncio.Semaphore) -> bool:
    body = bytearray()
    try:
        async with (
            few,
            asyncio.timeout(TIMEOUT_SECONDS),
            session.get(
                f"{url}/metrics",
                headers={"Accept": "text/plain; version=0.0.4", "Accept-Encoding": "identity"},
                auto_decompress=False,
                allow_redirects=False,  # a local port shall not send us out of this host
                timeout=aiohttp.ClientTimeout(),
            ) as response,
        ):
            try:
                async for chunk in response.content.iter_any():
                    body += chunk
                    if response.status != 200 or _VLLM_LINE.search(body) or len(body) > MAX_BODY_BYTES:
                        break
            finally:
                response.close()  # a stranger's connection is not kept
            return response.status == 200 and _VLLM_LINE.search(body) is not None
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return False
