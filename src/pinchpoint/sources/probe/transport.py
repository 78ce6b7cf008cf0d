"""Which outcome an exception of the transport stands for, and its words. Pure; the classes are aiohttp 3.14's."""

import errno
import ssl
import zlib

import aiohttp
import aiohttp.http_exceptions

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.http.os_cause import os_cause


def of_exception(error: BaseException) -> ProbeOutcome:
    """The outcome of a request whose transport failed. Subclasses are tested before their bases.

    A deadline of ours is not here: whoever set it knows which one it was.
    """
    match error:
        case aiohttp.ClientHttpProxyError() | aiohttp.ClientProxyConnectionError():
            return ProbeOutcome.PROXY
        case aiohttp.ClientConnectorDNSError():
            return ProbeOutcome.DNS
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return ProbeOutcome.TLS
        case aiohttp.ConnectionTimeoutError():
            return ProbeOutcome.CONNECT_TIMEOUT
        case aiohttp.ClientConnectorError():
            timed_out = error.os_error.errno == errno.ETIMEDOUT
            return ProbeOutcome.CONNECT_TIMEOUT if timed_out else ProbeOutcome.CONNECT_REFUSED
        case aiohttp.ClientPayloadError():
            return ProbeOutcome.INVALID_RESPONSE if isinstance(error.__cause__, zlib.error) else ProbeOutcome.TRUNCATED
        case aiohttp.ClientResponseError():  # what came is no HTTP
            return ProbeOutcome.INVALID_RESPONSE
        case aiohttp.ClientConnectionError() | ConnectionError():
            return ProbeOutcome.RESET
        case _:
            return ProbeOutcome.INTERNAL


def in_words(error: BaseException) -> str:
    """What happened, for people: none of Python's or aiohttp's own names where the cause is known."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} does not resolve"
        case aiohttp.ClientConnectorError():
            cause = os_cause(error.os_error)
            what = "TLS fails with" if isinstance(error, aiohttp.ClientSSLError) else "no connection to"
            return f"{what} {error.host}:{error.port}" + (f" ({cause})" if cause else "")
        case aiohttp.ClientPayloadError():
            return "the connection broke in the middle of the answer"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy answers {error.status} {error.message} when it is asked to connect"
        case aiohttp.ClientResponseError():
            return f"what came is no HTTP: {error.message}"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed before an answer"
        case _:
            return str(error) or type(error).__name__
