"""Servers that answer a scraper as a test wants it, and what it makes of them."""

import asyncio
import itertools
import ssl
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from time import monotonic

from aiohttp import web

from pinchpoint.snapshot import Absence, EngineReading, EngineTarget, HttpAccess
from pinchpoint.sources.engine import EngineScraper, EngineSourceSettings
from pinchpoint.sources.http import HttpClient

BODY = Path("tests/data/engine-metrics/vllm-0.33.0-v1.prom").read_bytes()
SMALL = b"vllm:num_requests_running 1\n"
QUICK = EngineSourceSettings(timeout_seconds=0.3)
PATIENT = EngineSourceSettings(timeout_seconds=10)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
RawAnswer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def scraper(url: str, settings: EngineSourceSettings = PATIENT, token: str = "") -> AsyncIterator[EngineScraper]:
    async with HttpClient() as client:
        yield EngineScraper(
            EngineTarget(engine="chat", url=url, access=HttpAccess(bearer_token=token)), client, settings
        )


@asynccontextmanager
async def http(**paths: Answer) -> AsyncIterator[str]:
    """A server that answers /metrics, /health and /version as given, and 404 elsewhere."""
    app = web.Application()
    for path, answer in paths.items():
        app.router.add_get(f"/{path}", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw(answer: RawAnswer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A socket that does exactly what ``answer`` does after the request's head."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /metrics "):
                await answer(reader, writer)
            else:
                writer.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def says(body: bytes = SMALL, status: int = 200, **headers: str) -> Answer:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return answer


def writes(*parts: bytes, forever: bool = False, pause: float = 0.0) -> RawAnswer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in itertools.cycle(parts) if forever else parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause)

    return answer


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the client gives up


@contextmanager
def memory_below(limit_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit_bytes
    finally:
        tracemalloc.stop()


async def absence_of(url: str, settings: EngineSourceSettings = PATIENT, token: str = "") -> Absence:
    async with scraper(url, settings, token) as engine:
        result = await engine.scrape(monotonic)
    assert isinstance(result, Absence)
    assert result.source == "engine/chat"
    assert result.detail.startswith(f"engine chat at {url}: ")
    assert "\n" not in result.detail
    return result


async def reading_of(url: str) -> EngineReading:
    async with scraper(url) as engine:
        result = await engine.scrape(monotonic)
    assert isinstance(result, EngineReading), result
    return result


async def stuck(request: web.Request) -> web.Response:
    await asyncio.sleep(60)
    raise AssertionError
