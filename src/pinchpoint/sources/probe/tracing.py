"""When each step of a request happened on the wire, whoever takes part in it: hooks, resolver, handshake, reads."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import aiohttp

from pinchpoint.sources.probe.reads import Reads


@dataclass(slots=True, kw_only=True)
class Stamps:
    """``perf_counter_ns`` of each step of one attempt; ``None`` for a step that did not happen.

    ``sent_ns`` is t0 of every latency: the connection is open and the request is about to be written.
    """

    started_ns: int
    on_ready: Callable[[], None] | None = None  # told once, when the connection is open
    resolve_started_ns: int | None = None
    resolved_ns: int | None = None
    connect_started_ns: int | None = None
    handshake_started_ns: int | None = None  # of TLS: the one with the server, where a proxy has its own
    ready_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    reused: bool = False
    reads: Reads = field(default_factory=Reads)

    def ready(self, *, reused: bool) -> None:
        """The connection is open. What was sent before, to open it through a proxy, was not the request."""
        self.reused, self.sent_ns = reused, None
        if self.on_ready is not None:
            self.on_ready()
        self.ready_ns = perf_counter_ns()


# The attempt that the running task, or a callback it has caused, works on. An attempt sets it; all who stamp look here.
attempt: ContextVar[Stamps | None] = ContextVar("attempt", default=None)


def stamp(step: str) -> None:
    """The step of the current attempt happens now. Nothing where there is no attempt."""
    stamps = attempt.get()
    if stamps is not None:
        setattr(stamps, step, perf_counter_ns())


def trace_config() -> aiohttp.TraceConfig:
    """aiohttp's hooks, for the steps that only it knows of. That of a body's chunk comes just before its write."""

    def stamping(step: str) -> Callable[[Any, Any, Any], Any]:
        async def hook(_session: aiohttp.ClientSession, _context: Any, _params: Any) -> None:
            stamp(step)

        return hook

    def ready(*, reused: bool) -> Callable[[Any, Any, Any], Any]:
        async def hook(_session: aiohttp.ClientSession, _context: Any, _params: Any) -> None:
            stamps = attempt.get()
            if stamps is not None:
                stamps.ready(reused=reused)

        return hook

    trace = aiohttp.TraceConfig()
    trace.on_connection_create_start.append(stamping("connect_started_ns"))
    trace.on_connection_create_end.append(ready(reused=False))
    trace.on_connection_reuseconn.append(ready(reused=True))
    trace.on_request_headers_sent.append(stamping("sent_ns"))
    trace.on_request_chunk_sent.append(stamping("sent_ns"))
    return trace
