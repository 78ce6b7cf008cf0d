"""Which outcome an exception of the transport stands for. Pure; the exception classes are those of aiohttp 3.14."""

import errno
import ssl
import zlib

import aiohttp
import aiohttp.http_exceptions

from pinchpoint.snapshot import ProbeOutcome


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
