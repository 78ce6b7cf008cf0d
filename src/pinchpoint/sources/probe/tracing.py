"""When each step of a request happened on the wire, by aiohttp's trace hooks."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import SimpleNamespace
from typing import Any

import aiohttp


@dataclass(slots=True, kw_only=True)
class Stamps:
    """``perf_counter_ns`` of each step of one attempt; ``None`` for a step that did not happen.

    ``ready_ns`` is t0 of every latency: the connection is open and nothing has been sent yet.
    """

    started_ns: int
    on_ready: Callable[[], None] | None = None  # told once, when the connection is open
    resolve_started_ns: int | None = None
    resolved_ns: int | None = None
    connect_started_ns: int | None = None
    ready_ns: int | None = None
    sent_ns: int | None = None
    headers_ns: int | None = None
    reused: bool = False


def trace_config() -> aiohttp.TraceConfig:
    """Hooks that fill in the ``Stamps`` given as ``trace_request_ctx``. There is none for TLS: connect includes it."""

    def stamping(field: str) -> Callable[[Any, SimpleNamespace, Any], Any]:
        async def stamp(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
            setattr(context.trace_request_ctx, field, perf_counter_ns())

        return stamp

    def ready(*, reused: bool) -> Callable[[Any, SimpleNamespace, Any], Any]:
        async def stamp(_session: aiohttp.ClientSession, context: SimpleNamespace, _params: Any) -> None:
            stamps: Stamps = context.trace_request_ctx
            stamps.reused = reused
            if stamps.on_ready is not None:
                stamps.on_ready()
            stamps.ready_ns = perf_counter_ns()

        return stamp

    trace = aiohttp.TraceConfig()
    trace.on_dns_resolvehost_start.append(stamping("resolve_started_ns"))
    trace.on_dns_resolvehost_end.append(stamping("resolved_ns"))
    trace.on_connection_create_start.append(stamping("connect_started_ns"))
    trace.on_connection_create_end.append(ready(reused=False))
    trace.on_connection_reuseconn.append(ready(reused=True))
    trace.on_request_headers_sent.append(stamping("sent_ns"))
    trace.on_request_chunk_sent.append(stamping("sent_ns"))
    return trace
