"""From an address text to a listening socket, or one line that says why not."""

import errno
import re
import socket

_ADDRESS = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.%\w]+)\]|(?P<host>[^\s\0:/\[\]]*)):(?P<port>[0-9]{1,5})")
BACKLOG = 512  # connections that wait while the loop is busy: a burst of parallel scrapes is not refused

_CAUSES = {
    errno.EADDRINUSE: "the port is taken by another process; stop it or choose another port",
    errno.EACCES: "this user may not bind the port; choose one from 1024 up",
    errno.EADDRNOTAVAIL: "the address does not belong to this machine; choose one that does, or :PORT for all",
    socket.EAI_NONAME: "the host name does not resolve; use an IP address",
}


class ListenError(Exception):
    """The server can't listen. The message is one line: address, cause, remedy."""


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``HOST:PORT``, ``[IPV6]:PORT`` or ``:PORT`` (host ``""``: every interface).

    Raises ``ValueError`` with the accepted forms.
    """
    match = _ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise ValueError(f"{address!r} is no listen address: use HOST:PORT, [IPV6]:PORT or :PORT with a port to 65535")
    return match["six"] or match["host"] or "", int(match["port"])


def listen(address: str) -> socket.socket:
    """A listening socket: for ``:PORT`` one that takes IPv6 and IPv4. May block on a name lookup.

    Raises ``ListenError``.
    """
    host, port = split_address(address)
    try:
        if host:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            return socket.create_server((host, port), family=family, backlog=BACKLOG)
        return _listen_everywhere(port)
    except UnicodeError:  # "a..b", or a label of more than 63 characters
        raise ListenError(f"can't listen on {address}: {_CAUSES[socket.EAI_NONAME]} (web.listen_address)") from None
    except OSError as error:
        cause = _CAUSES.get(error.errno or 0, error.strerror or str(error))
        raise ListenError(f"can't listen on {address}: {cause} (web.listen_address)") from error


def _listen_everywhere(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
        except OSError as error:
            # IPv6 may be compiled in and switched off: then only the bind fails.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                raise
    return socket.create_server(("", port), backlog=BACKLOG)


def url_of(sock: socket.socket) -> str:
    """Where a browser on this machine finds a listening socket."""
    host, port = sock.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "localhost"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
