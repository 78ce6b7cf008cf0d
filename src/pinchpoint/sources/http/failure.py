"""The one error of a source that asks over HTTP: no reading, and why. And what a failed request is in its words."""

import ssl

import aiohttp

from pinchpoint.snapshot import Reason
from pinchpoint.sources.http.os_cause import os_cause


class SourceError(Exception):
    """No reading could be made.

    ``reason`` is from the closed set that ends up in an ``Absence``. ``detail`` names cause and remedy on one line; it
    does not name the thing asked, which whoever catches this knows.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


# In order: a subclass comes before its parent.
_FAILURES: tuple[tuple[type[Exception], Reason, str], ...] = (
    (aiohttp.ClientConnectorDNSError, Reason.DNS, "the host name does not resolve; check url"),
    (aiohttp.ClientConnectorError, Reason.CONNECT_REFUSED, "no connection; is the server running on this port?"),
    (aiohttp.ClientPayloadError, Reason.TRUNCATED, "the connection broke in the middle of the body"),
    (aiohttp.ServerDisconnectedError, Reason.TRUNCATED, "the connection was closed before an answer; restarting?"),
    (aiohttp.ClientResponseError, Reason.NOT_EXPOSITION, "the answer is not HTTP; check the port"),
    (aiohttp.ClientConnectionError, Reason.TRUNCATED, "the connection broke; is the server restarting?"),
    (aiohttp.ClientError, Reason.ERROR, "the request could not be made; check url"),
)

# Part of what OpenSSL says, and what helps.
_TLS_REMEDIES: tuple[tuple[str, str], ...] = (
    ("hostname mismatch", "set tls.server_name to a name that is in it"),
    ("ip address mismatch", "set tls.server_name to a name that is in it"),
    ("self-signed", "set tls.ca_file to the authority that signed it"),
    ("self signed", "set tls.ca_file to the authority that signed it"),
    ("unable to get local issuer", "set tls.ca_file to the authority that signed it"),
    ("not yet valid", "check the clocks"),
    ("expired", "renew it there; pinchpoint picks up its own files by itself"),
    ("wrong version number", "the port speaks no TLS: write http://"),
    ("record layer failure", "the port speaks no TLS: write http://"),
    ("packet length too long", "the port speaks no TLS: write http://"),
    ("alert", "the server refuses us: set tls.certificate_file and key_file to a certificate that it trusts"),
)


def failure(error: aiohttp.ClientError, scheme: str) -> SourceError:
    """What aiohttp's ``error`` about a URL of that ``scheme`` is in our words."""
    tls = _tls_error(error)
    if tls is not None:
        cause = os_cause(tls) or "no handshake"
        remedies = (remedy for part, remedy in _TLS_REMEDIES if part in cause.lower())
        remedy = next(remedies, "check http against https, the certificate and its name")
        return SourceError(Reason.TLS, f"TLS fails, {cause}; {remedy}")
    reason, text = next((reason, text) for kind, reason, text in _FAILURES if isinstance(error, kind))
    if scheme == "https" and type(error) in (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
        # How asyncio's servers (uvicorn) end a TLS 1.3 handshake that lacks a certificate: without a word.
        text += " Or it demands another client certificate: see tls.certificate_file"
    cause = os_cause(error.os_error) if isinstance(error, aiohttp.ClientConnectorError) else ""
    return SourceError(reason, f"{text} ({cause})" if cause else text)


def _tls_error(error: aiohttp.ClientError) -> ssl.SSLError | None:
    """A server that wants our certificate says so after the handshake (TLS 1.3), when a request is under way."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error.__cause__
    if isinstance(inner, ssl.SSLError):
        return inner
    return ssl.SSLError() if isinstance(error, aiohttp.ClientSSLError) else None
