"""One request on the wire. The only file of this room that reads a response.

Every stamp is taken right after the socket read, before its bytes are parsed. Nothing here judges or retries, and
nothing raises but cancellation and a defect.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import perf_counter_ns, time

import aiohttp

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import transport
from pinchpoint.sources.probe.event import StreamEvent
from pinchpoint.sources.probe.settings import DeadlineSettings
from pinchpoint.sources.probe.sse import SseEvent, SseParser, StreamTooLargeError
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript
from pinchpoint.sources.probe.watch import Stage, Watch

MAX_BODY_BYTES = 64 * 1024  # of an answer that is no stream
MAX_STREAM_BYTES = 8 * 1024 * 1024
MAX_EVENTS = 100_000
SLICE_BYTES = 64 * 1024  # inflated at a time
BODY_SECONDS = 5.0  # for such a body to arrive: its status is known already

WAIT_HEADERS = ("date", "retry-after", "retry-after-ms")

_NO_STREAM = ("json", "html")  # any other Content-Type may be a stream: servers label theirs in many ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to send. ``body`` is ``None`` for a GET."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, object] | None = None
    proxy: str | None = None


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What happened on the wire, not judged yet.

    ``status`` is ``None`` when no answer came; ``body`` is ``None`` when the answer was read as a stream, into
    ``transcript``. ``failure`` is what broke the exchange off, and ``message`` the transport's words on it.
    """

    stamps: Stamps
    transcript: Transcript = field(default_factory=Transcript)
    status: int | None = None
    content_type: str = ""
    content_encoding: str = ""
    location: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)  # those that say when to come again; lower-case names
    received_at: float = 0.0  # Unix time of the head of the answer
    body: str | None = None
    failure: ProbeOutcome | None = None
    message: str = ""
    end_ns: int = 0


async def stream(
    request: Request,
    deadlines: DeadlineSettings,
    interpret: Callable[[SseEvent], StreamEvent],
    session: aiohttp.ClientSession,
) -> Exchange:
    """Send the request and read its stream to the end; ``interpret`` is the dialect's. A refusal is read whole."""

    async def read(response: aiohttp.ClientResponse, exchange: Exchange, watch: Watch) -> None:
        if 200 <= response.status < 300 and not any(word in exchange.content_type for word in _NO_STREAM):
            await _read_events(response, exchange, watch, interpret)
        else:
            exchange.body = await _read_body(response, MAX_BODY_BYTES)

    return await _send(session, request, deadlines, read)


async def fetch(request: Request, deadlines: DeadlineSettings, limit: int, session: aiohttp.ClientSession) -> Exchange:
    """GET a document, of which the first ``limit`` bytes are read."""

    async def read(response: aiohttp.ClientResponse, exchange: Exchange, _watch: Watch) -> None:
        exchange.body = await _read_body(response, limit)

    return await _send(session, request, deadlines, read)


async def _send(
    session: aiohttp.ClientSession,
    request: Request,
    deadlines: DeadlineSettings,
    read: Callable[[aiohttp.ClientResponse, Exchange, Watch], Awaitable[None]],
) -> Exchange:
    watch = Watch(deadlines)
    exchange = Exchange(stamps=Stamps(started_ns=perf_counter_ns(), on_ready=lambda: watch.enter(Stage.FIRST_TOKEN)))
    method = "GET" if request.body is None else "POST"
    try:
        async with (
            watch,
            session.request(
                method,
                request.url,
                json=request.body,
                headers=request.headers,
                proxy=request.proxy,
                allow_redirects=False,  # a redirected POST would become a GET of some page, and a success
                trace_request_ctx=exchange.stamps,
                auto_decompress=False,  # it would inflate a chunk whole, to a thousand times its size
            ) as response,
        ):
            exchange.stamps.headers_ns = perf_counter_ns()
            exchange.status = response.status
            exchange.content_type = response.headers.get("Content-Type", "").lower()
            exchange.content_encoding = response.headers.get("Content-Encoding", "").lower()
            exchange.location = response.headers.get("Location", "")
            exchange.received_at = time()
            exchange.headers = {name: response.headers[name] for name in WAIT_HEADERS if name in response.headers}
            await read(response, exchange, watch)
    except StreamTooLargeError as error:
        exchange.failure, exchange.message = ProbeOutcome.INVALID_RESPONSE, str(error)
    except (aiohttp.ClientError, OSError) as error:  # TimeoutError, the deadline's, is an OSError
        exchange.failure, exchange.message = _failure(error, exchange, watch)
    exchange.end_ns = perf_counter_ns()
    return exchange


def _failure(error: Exception, exchange: Exchange, watch: Watch) -> tuple[ProbeOutcome | None, str]:
    if watch.expired:
        stamps = exchange.stamps
        resolving = stamps.resolve_started_ns is not None and stamps.resolved_ns is None
        return ProbeOutcome.DNS if resolving else watch.outcome(), f"deadline passed: {watch.overdue}"
    return transport.of_exception(error), transport.in_words(error)


async def _read_events(
    response: aiohttp.ClientResponse, exchange: Exchange, watch: Watch, interpret: Callable[[SseEvent], StreamEvent]
) -> None:
    parser, transcript, size, count = SseParser(), exchange.transcript, 0, 0
    at_ns = perf_counter_ns()
    async for chunk in _chunks(response):
        at_ns = perf_counter_ns()
        size += len(chunk)
        events = parser.feed(chunk)
        count += len(events)
        if size > MAX_STREAM_BYTES or count > MAX_EVENTS:
            raise StreamTooLargeError(f"the stream is larger than {MAX_STREAM_BYTES} bytes or {MAX_EVENTS} events")
        for event in map(interpret, events):
            transcript.add(event, at_ns)
            if transcript.ended:
                if watch.stage is not Stage.DRAIN or event.text is not None:  # some say the reason on every chunk
                    watch.enter(Stage.DRAIN)
            elif event.progress and transcript.first_text_ns is not None:
                watch.enter(Stage.IDLE)
    for event in map(interpret, parser.close()):
        if not event.malformed:  # the first half of an event is no event
            transcript.add(event, at_ns)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """What the socket reads bring, inflated in slices: a small read can hold gigabytes, and the loop has more to do."""
    encoding = response.headers.get("Content-Encoding", "").lower()
    inflater = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None  # 47: either header
    async for chunk in response.content.iter_any():
        if inflater is None:
            yield chunk
            continue
        packed = chunk
        while packed:
            try:
                yield inflater.decompress(packed, SLICE_BYTES)
            except zlib.error as error:
                raise aiohttp.ClientPayloadError(f"the body can't be inflated ({error})") from error
            packed = inflater.unconsumed_tail
            await asyncio.sleep(0)


async def _read_body(response: aiohttp.ClientResponse, limit: int) -> str:
    """At most ``limit`` bytes as text; what has come when the body breaks off or dawdles."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece in _chunks(response):
                pieces.append(piece[: limit - size])
                size += len(pieces[-1])
                if size >= limit:
                    break
    except (aiohttp.ClientError, TimeoutError):
        pass
    return b"".join(pieces).decode("utf-8", errors="replace")
