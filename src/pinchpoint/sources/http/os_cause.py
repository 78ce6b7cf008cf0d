"""The operating system's or TLS library's cause of a failed connection, in its own words and without Python's."""

import os
import socket
import ssl


def os_cause(error: OSError | None) -> str:
    """``connection refused``, ``certificate has expired``; empty when there is no more to say.

    asyncio puts "Connect call failed ('127.0.0.1', 8000)" in the place of the system's text, so the number is asked.
    """
    if isinstance(error, ssl.SSLCertVerificationError):
        return str(getattr(error, "verify_message", ""))
    if isinstance(error, ssl.SSLError):
        return str(getattr(error, "reason", None) or "").replace("_", " ").lower()
    if error is None or isinstance(error, socket.gaierror) or not error.errno or error.errno < 0:
        return ""
    return os.strerror(error.errno).lower()
