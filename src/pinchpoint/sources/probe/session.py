"""A target's HTTP session: its TLS, its headers, and connections that are stamped."""

import asyncio
import ssl

import aiohttp
from yarl import URL

from pinchpoint.sources.http.tls import tls_context
from pinchpoint.sources.probe.connection import StampedConnector
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.tracing import trace_config

SPARE_KEEPALIVE_SECONDS = 15.0


class TlsUnusableError(ValueError):
    """A file of the target's ``tls`` can't be used. The text says which, why, and what it should hold."""


async def open_session(settings: ProbeTargetSettings) -> aiohttp.ClientSession:
    """A session that keeps a connection from one probe to the next. Raises ``TlsUnusableError``.

    Proxies of the environment are not used, and deadlines are the caller's.
    """
    return aiohttp.ClientSession(
        connector=StampedConnector(
            keepalive_seconds=settings.interval_seconds + SPARE_KEEPALIVE_SECONDS, context=await _context(settings)
        ),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={
            "Accept": "text/event-stream, application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "pinchpoint",
        },
        trace_configs=[trace_config()],
    )


async def _context(settings: ProbeTargetSettings) -> ssl.SSLContext | None:
    """In a thread: to read the system's authorities takes tens of milliseconds. ``None`` where there will be no TLS."""
    if "https" not in {URL(url).scheme for url in (settings.url, settings.proxy) if url is not None}:
        return None
    try:
        return await asyncio.to_thread(tls_context, settings.tls.files)
    except ValueError as error:
        raise TlsUnusableError(f"tls.{error}") from None
