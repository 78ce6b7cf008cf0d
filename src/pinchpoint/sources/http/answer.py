"""One HTTP answer, with a cap on its inflated size and no redirect to elsewhere."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

import aiohttp
from yarl import URL

from pinchpoint.snapshot import Reason
from pinchpoint.sources.http.failure import SourceError

_REDIRECT = frozenset({301, 302, 303, 307, 308})
_ENCODINGS = frozenset({"", "identity", "gzip", "deflate"})


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer. ``body`` is empty unless ``status`` is 200. ``at`` is when its head arrived."""

    status: int
    at: float
    body: bytes = b""
    content_type: str | None = None
    location: str = ""


async def read_answer(response: aiohttp.ClientResponse, max_body_bytes: int, at: float) -> Answer:
    """The answer whose head is ``response``. Leaves the connection fit for the next request, or closed."""
    location = response.headers.get("Location", "") if response.status in _REDIRECT else ""
    body = b""
    try:
        if response.status == 200:
            body = await _read(response, max_body_bytes)
    finally:
        if not response.content.is_eof():
            response.close()  # else the connection would be kept until an endless body has been read
    return Answer(response.status, at, body, response.headers.get("Content-Type"), location)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; empty where it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def redirected(here: URL, answer: Answer) -> URL:
    """Where ``answer`` sends us from ``here``. Raises ``SourceError`` when that is another origin."""
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
        named = encoding if encoding in ("br", "zstd", "compress") else "something else"
        raise SourceError(Reason.NOT_EXPOSITION, f"the body is encoded as {named}, which was not asked for")
    # Inflating is done here, not by aiohttp, because a small body can inflate to gigabytes.
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
