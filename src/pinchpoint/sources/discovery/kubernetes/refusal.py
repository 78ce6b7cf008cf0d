"""What the API server's refusals mean, with the remedy: in words for the log, and as what to do next."""

import json

import aiohttp

from pinchpoint.snapshot import Reason
from pinchpoint.sources.http import SourceError, json_object
from pinchpoint.sources.http.os_cause import os_cause

MAX_WORDS = 200
RBAC = "apply deploy/kubernetes/rbac.yaml, which lets pinchpoint list and watch pods"

# In order: a subclass comes before its parent.
_BROKEN: tuple[tuple[type[Exception], Reason, str], ...] = (
    (aiohttp.ClientConnectorDNSError, Reason.DNS, "the API server's name does not resolve"),
    (aiohttp.ClientSSLError, Reason.TLS, "TLS with the API server fails; is ca.crt the one of this cluster?"),
    (aiohttp.ClientConnectorError, Reason.CONNECT_REFUSED, "no connection to the API server"),
    (aiohttp.ClientResponseError, Reason.INVALID, "what answers does not speak HTTP; check api_server"),
    (aiohttp.ClientConnectionError, Reason.TRUNCATED, "the connection to the API server broke"),
    (aiohttp.ClientPayloadError, Reason.TRUNCATED, "the connection to the API server broke in the middle"),
)


class GoneError(Exception):
    """410: the server no longer has the version that was named; list anew. No fault of anybody's."""


class BusyError(SourceError):
    """Asked to come back after ``retry_after_seconds``."""

    def __init__(self, reason: Reason, detail: str, retry_after_seconds: float) -> None:
        super().__init__(reason, detail)
        self.retry_after_seconds = retry_after_seconds


def refusal(status: int, body: bytes, retry_after: str = "", *, verb: str, where: str) -> Exception:
    """What to raise for an answer that is not 200. ``where`` is like "in namespace ml"."""
    told = said(body) or "no word why"
    if status == 410:
        return GoneError()
    if status == 401:
        return SourceError(
            Reason.UNAUTHORIZED, f"the API server refuses our token (HTTP 401), also when read anew: {told}"
        )
    if status == 403:
        return SourceError(Reason.UNAUTHORIZED, f"we may not {verb} pods {where} (HTTP 403); {RBAC}: {told}")
    if status == 400:
        return SourceError(Reason.INVALID, f"the API server takes offence (HTTP 400); check label_selector: {told}")
    detail = f"the API server answers HTTP {status} when asked to {verb} pods {where}: {told}"
    if retry_after.isascii() and retry_after.isdigit():
        return BusyError(Reason.HTTP_STATUS, detail, float(retry_after[:6]))
    return SourceError(Reason.HTTP_STATUS, detail)


def error_event(item: object, *, where: str) -> Exception:
    """What to raise for the ERROR that ends a watch: its object is the ``Status`` that else is an answer's body."""
    code = item.get("code") if isinstance(item, dict) else None
    return refusal(code if type(code) is int else 500, json.dumps(item).encode(), verb="watch", where=where)


def reworded(error: SourceError) -> SourceError:
    """The error of a request in words that fit an API server, which is no engine and has no tls.ca_file."""
    cause = error.__context__  # what aiohttp raised
    for kind, reason, text in _BROKEN:
        if isinstance(cause, kind):
            words = os_cause(cause.os_error) if isinstance(cause, aiohttp.ClientConnectorError) else ""
            return SourceError(reason, f"{text} ({words})" if words else text)
    return error


def said(body: bytes) -> str:
    """The message of a ``Status``, on one line; empty for any other body, which a proxy may have written."""
    message = json_object(body).get("message")
    words = " ".join(message.split()) if isinstance(message, str) else ""
    return words[:MAX_WORDS] if words.isprintable() else ""
