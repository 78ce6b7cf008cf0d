"""One request on the wire. The only file of this room that reads a response.

Every event bears the stamp of the socket read that brought its end. Nothing here judges or retries, and nothing
raises but cancellation and a defect.
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
from pinchpoint.sources.probe.tracing import Stamps, attempt
from pinchpoint.sources.probe.transcript import Transcript
from pinchpoint.sources.probe.watch import Stage, Watch

MAX_BODY_BYTES = 64 * 1024  # of an answer that is no stream
MAX_STREAM_BYTES = 8 * 1024 * 1024
MAX_EVENTS = 100_000
SLICE_BYTES = 64 * 1024  # inflated at a time
BODY_SECONDS = 5.0  # for such a body to arrive: its status is known already

WAIT_HEADERS = ("date", "retry-after", "retry-after-ms")
_BEFORE_THE_PROXY = (ProbeOutcome.RESET, ProbeOutcome.CONNECT_REFUSED, ProbeOutcome.INVALID_RESPONSE)
_NO_STREAM = ("json", "html")  # any other Content-Type may be a stream: servers label theirs in many ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to send. ``body`` is ``None`` for a GET; ``server_name`` is what a certificate must say, if not the host."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: Mapping[str, object] | None = None
    proxy: str | None = None
    server_name: str | None = None


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
    resent: bool = False  # the same request was sent before, on an idle connection that broke


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
            exchange.body = await _read_body(response, exchange, MAX_BODY_BYTES)

    return await _send(session, request, deadlines, read)


async def fetch(request: Request, deadlines: DeadlineSettings, limit: int, session: aiohttp.ClientSession) -> Exchange:
    """GET a document, of which the first ``limit`` bytes are read."""

    async def read(response: aiohttp.ClientResponse, exchange: Exchange, _watch: Watch) -> None:
        exchange.body = await _read_body(response, exchange, limit)

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
    before = attempt.set(exchange.stamps)
    try:
        async with (
            watch,
            session.request(
                method,
                request.url,
                json=request.body,
                headers=request.headers,
                proxy=request.proxy,
                server_hostname=request.server_name,
                allow_redirects=False,  # a redirected POST would become a GET of some page, and a success
                auto_decompress=False,  # it would inflate a chunk whole, to a thousand times its size
            ) as response,
        ):
            _note_head(exchange, response)
            await read(response, exchange, watch)
    except StreamTooLargeError as error:
        exchange.failure, exchange.message = ProbeOutcome.INVALID_RESPONSE, str(error)
    except (aiohttp.ClientError, OSError) as error:  # TimeoutError, the deadline's, is an OSError
        exchange.failure, exchange.message = _failure(error, exchange.stamps, watch, proxied=request.proxy is not None)
    except UnicodeError:  # "a..b", or a label of more than 63 characters
        exchange.failure, exchange.message = ProbeOutcome.DNS, "the host name is none that could resolve"
    finally:
        attempt.reset(before)
    exchange.end_ns = perf_counter_ns()
    return exchange


def _note_head(exchange: Exchange, response: aiohttp.ClientResponse) -> None:
    exchange.stamps.headers_ns = exchange.stamps.reads.head_ns or perf_counter_ns()
    exchange.status = response.status
    exchange.content_type = response.headers.get("Content-Type", "").lower()
    exchange.content_encoding = response.headers.get("Content-Encoding", "").lower()
    exchange.location = response.headers.get("Location", "")
    exchange.received_at = time()
    exchange.headers = {name: response.headers[name] for name in WAIT_HEADERS if name in response.headers}


def _failure(error: Exception, stamps: Stamps, watch: Watch, *, proxied: bool) -> tuple[ProbeOutcome | None, str]:
    tunnelling = proxied and stamps.ready_ns is None and stamps.handshake_started_ns is None
    if watch.expired:
        overdue = f"deadline passed: {watch.overdue}"
        if stamps.ready_ns is not None:
            return watch.outcome(), overdue
        if stamps.resolve_started_ns is not None and stamps.resolved_ns is None:
            return ProbeOutcome.DNS, f"{overdue}, while the name was looked up"
        if tunnelling:
            return ProbeOutcome.PROXY, f"{overdue}, while the proxy was asked to connect"
        step = "with TCP open but no answer to the TLS handshake" if stamps.handshake_started_ns is not None else ""
        return watch.outcome(), ", ".join(filter(None, (overdue, step)))
    outcome, words = transport.of_exception(error), transport.in_words(error)
    if tunnelling and outcome in _BEFORE_THE_PROXY:
        return ProbeOutcome.PROXY, f"the proxy does not connect: {words}"
    return outcome, words


async def _read_events(
    response: aiohttp.ClientResponse, exchange: Exchange, watch: Watch, interpret: Callable[[SseEvent], StreamEvent]
) -> None:
    parser, transcript, size, count = SseParser(), exchange.transcript, 0, 0
    at_ns = perf_counter_ns()
    async for chunk, at_ns in _chunks(response, exchange):
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


async def _chunks(response: aiohttp.ClientResponse, exchange: Exchange) -> AsyncIterator[tuple[bytes, int]]:
    """What each socket read brought, and its stamp.

    Inflated in slices: a small read can hold gigabytes, and the loop has more to do.
    """
    encoded = exchange.content_encoding in ("gzip", "deflate")
    inflater = zlib.decompressobj(wbits=47) if encoded else None  # 47: either header
    async for data in response.content.iter_any():
        for chunk, at_ns in exchange.stamps.reads.cut(data, perf_counter_ns()):
            packed = chunk
            while inflater is not None and packed:
                try:
                    yield inflater.decompress(packed, SLICE_BYTES), at_ns
                except zlib.error as error:
                    raise aiohttp.ClientPayloadError(f"the body can't be inflated ({error})") from error
                packed = inflater.unconsumed_tail
                await asyncio.sleep(0)
            if inflater is None:
                yield chunk, at_ns


async def _read_body(response: aiohttp.ClientResponse, exchange: Exchange, limit: int) -> str:
    """At most ``limit`` bytes as text; what has come when the body breaks off or dawdles."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for piece, _ in _chunks(response, exchange):
                pieces.append(piece[: limit - size])
                size += len(pieces[-1])
                if size >= limit:
                    break
    except (aiohttp.ClientError, TimeoutError):
        pass
    return b"".join(pieces).decode("utf-8", errors="replace")
