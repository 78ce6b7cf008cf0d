"""One bounded HTTP GET: a deadline, a cap on the inflated size, no proxy, no redirect to elsewhere."""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from pinchpoint.snapshot import Reason
from pinchpoint.sources.http.failure import SourceError
from pinchpoint.sources.http.os_cause import os_cause

MAX_REDIRECTS = 3
_REDIRECT = frozenset({301, 302, 303, 307, 308})
# Compression would cost CPU on the engine's own event loop.
EXPOSITION = {"Accept": "text/plain; version=0.0.4", "Accept-Encoding": "identity"}
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})

# In order: a subclass comes before its parent.
_FAILURES: tuple[tuple[type[Exception], Reason, str], ...] = (
    (aiohttp.ClientConnectorDNSError, Reason.DNS, "the host name does not resolve; check url"),
    (aiohttp.ClientSSLError, Reason.TLS, "TLS fails; check http against https, the certificate and its name"),
    (aiohttp.ClientConnectorError, Reason.CONNECT_REFUSED, "no connection; is the engine running on this port?"),
    (aiohttp.ClientPayloadError, Reason.TRUNCATED, "the connection broke in the middle of the body"),
    (aiohttp.ServerDisconnectedError, Reason.TRUNCATED, "the connection was closed before an answer; restarting?"),
    (aiohttp.ClientResponseError, Reason.NOT_EXPOSITION, "the answer is not HTTP; check the port"),
    (aiohttp.ClientConnectionError, Reason.TRUNCATED, "the connection broke; is the engine restarting?"),
    (aiohttp.ClientError, Reason.ERROR, "the request could not be made; check url"),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. ``body`` is empty unless ``status`` is 200. ``at`` is when its head arrived."""

    status: int
    at: float
    body: bytes = b""
    content_type: str | None = None
    location: str = ""


def open_session() -> aiohttp.ClientSession:
    """A session that suits engines: no proxy from the environment, no cookies. Close it at the end."""
    return aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar())


async def fetch(
    session: aiohttp.ClientSession,
    url: str,
    *,
    timeout_seconds: float,
    max_body_bytes: int,
    now: Callable[[], float],
    bearer_token: str = "",
    headers: Mapping[str, str] = EXPOSITION,
) -> Answer:
    """GET ``url``, following up to three redirects within its own origin, which is where the token may go.

    Any status is an ``Answer``. Raises ``SourceError`` when there is none in time, in size or in one piece.
    """
    if bearer_token:
        headers = {**headers, "Authorization": f"Bearer {bearer_token}"}
    try:
        async with asyncio.timeout(timeout_seconds):
            here = URL(url)
            for _ in range(1 + MAX_REDIRECTS):
                answer = await _get(session, here, headers, max_body_bytes, now)
                if not answer.location:
                    return answer
                here = _redirected(here, answer)
    except TimeoutError:
        raise SourceError(
            Reason.TIMEOUT, f"no complete answer within {timeout_seconds:g} s; is the engine overloaded or hung?"
        ) from None
    except aiohttp.ClientError as error:
        raise _failure(error) from None
    except UnicodeError:  # "a..b", or a label of more than 63 characters
        raise SourceError(Reason.DNS, "the host name is none that could resolve; check url") from None
    raise SourceError(Reason.HTTP_STATUS, f"more than {MAX_REDIRECTS} redirects; set metrics_path to the final path")


async def _get(
    session: aiohttp.ClientSession, url: URL, headers: Mapping[str, str], max_bytes: int, now: Callable[[], float]
) -> Answer:
    # Inflating is done here, not by aiohttp, because a small body can inflate to gigabytes.
    async with session.get(
        url, headers=headers, allow_redirects=False, auto_decompress=False, timeout=aiohttp.ClientTimeout()
    ) as response:
        at = now()
        location = response.headers.get("Location", "") if response.status in _REDIRECT else ""
        body = b""
        try:
            if response.status == 200:
                body = await _read(response, max_bytes)
        finally:
            if not response.content.is_eof():
                response.close()  # else the connection would be kept until an endless body has been read
        return Answer(response.status, at, body, response.headers.get("Content-Type"), location)


def _redirected(here: URL, answer: Answer) -> URL:
    try:
        there = here.join(URL(answer.location))
        same = there.origin() == here.origin()
    except ValueError:
        raise SourceError(Reason.HTTP_STATUS, f"HTTP {answer.status} to a location that is no URL") from None
    if not same:
        raise SourceError(
            Reason.HTTP_STATUS, f"HTTP {answer.status} redirects to {there.origin()}; set url to it if that is right"
        )
    return there


async def _read(response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
    encoding = response.headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise SourceError(Reason.NOT_EXPOSITION, f"the body is encoded as {encoding[:20]}, which was not asked for")
    inflater = zlib.decompressobj(wbits=47) if encoding in ("gzip", "deflate") else None  # 47: either header
    body = bytearray()
    async for chunk in response.content.iter_any():
        try:
            body += inflater.decompress(chunk, max_bytes + 1 - len(body)) if inflater is not None else chunk
        except zlib.error:
            raise SourceError(Reason.NOT_EXPOSITION, "the body says it is compressed and can't be inflated") from None
        if len(body) > max_bytes:
            raise SourceError(
                Reason.TOO_LARGE, f"the body is larger than {max_bytes} bytes; wrong port, or raise max_body_bytes"
            )
    if inflater is not None and not inflater.eof:
        raise SourceError(Reason.TRUNCATED, f"the compressed body ends early, after {len(body)} inflated bytes")
    return bytes(body)


def _failure(error: aiohttp.ClientError) -> SourceError:
    reason, text = next((reason, text) for kind, reason, text in _FAILURES if isinstance(error, kind))
    cause = os_cause(error.os_error) if isinstance(error, aiohttp.ClientConnectorError) else ""
    return SourceError(reason, f"{text} ({cause})" if cause else text)
