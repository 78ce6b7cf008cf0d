"""Connections whose every step is stamped where it happens: look-up, TLS handshake, and each read of the socket.

aiohttp's hooks see TCP and TLS as one step, and a body only when a task gets to it. So the resolver stamps by itself,
the handshake does (``SSLContext.sslobject_class`` is there to be replaced), and so does the protocol, before any byte
is parsed. That a connection's protocol can be replaced is not aiohttp's promise; a test notices when it can't be.
"""

import asyncio
import functools
import socket
import ssl
from time import perf_counter_ns
from typing import cast

import aiohttp
from aiohttp.abc import ResolveResult
from aiohttp.client_proto import ResponseHandler
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from pinchpoint.sources.http.resolver import Resolver
from pinchpoint.sources.probe.reads import Reads
from pinchpoint.sources.probe.tracing import attempt, stamp


class StampedProtocol(ResponseHandler):
    """Stamps each read before it is parsed, into ``reads``, which are those of the request under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._before: object = None  # the body of the answer before this one
        self._reads = Reads()

    def begin(self) -> Reads:
        """A new request: where the reads of its answer will be."""
        self._before, self._reads = self._payload, Reads()
        return self._reads

    def data_received(self, data: bytes) -> None:
        at_ns = perf_counter_ns()
        super().data_received(data)
        body = self._payload
        if body is not None and body is not self._before:
            if self._reads.head_ns is None:
                self._reads.head_ns = at_ns
            self._reads.mark(body.total_bytes, at_ns)


class StampedHandshake(ssl.SSLObject):
    """Stamps when a handshake begins. That it is over is when the connection is open."""

    _begun = False

    def do_handshake(self) -> None:
        if not self._begun:
            self._begun = True
            stamp("handshake_started_ns")
        super().do_handshake()


class StampedResolver(Resolver):
    """Stamps each look-up, also that of a proxy's name, of which aiohttp's hooks say nothing."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        stamp("resolve_started_ns")
        found = await super().resolve(host, port, family)
        stamp("resolved_ns")
        return found


class StampedConnector(aiohttp.TCPConnector):
    """As many connections as are asked for, kept for ``keepalive_seconds``; ``context`` is for https:// URLs."""

    def __init__(self, *, keepalive_seconds: float, context: ssl.SSLContext | None = None) -> None:
        if context is not None:
            context.sslobject_class = StampedHandshake
        self._own_resolver = StampedResolver()
        super().__init__(
            limit=0,
            keepalive_timeout=keepalive_seconds,
            resolver=self._own_resolver,
            ssl=context if context is not None else True,
        )
        self._factory = cast("functools.partial[ResponseHandler]", functools.partial(StampedProtocol, loop=self._loop))

    async def connect(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - as aiohttp has it
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        stamps = attempt.get()
        if stamps is not None and isinstance(connection.protocol, StampedProtocol):
            stamps.reads = connection.protocol.begin()
        return connection

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=abort_ssl)
        await self._own_resolver.close()
