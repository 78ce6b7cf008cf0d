"""Many engines in one process that costs little: bodies of ``engine_body`` on ports of their own, and a sink.

Prints the ports as JSON, then answers each line on stdin with what was scraped since the line before, by scraper (told
by its User-Agent). Ends with stdin. ``POST`` of anything, to any port, is swallowed: a peer has to send somewhere.
"""

import asyncio
import json
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a file

from bench.engine_body import Body

VMAGENT = b"vm_promscrape"
_OK = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
_TEXT, _JSON = b"text/plain; version=0.0.4; charset=utf-8", b"application/json"
_ACCEPTED, _UNKNOWN = b"HTTP/1.1 204 No Content\r\n\r\n", b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class Scrapes:
    """When each engine was scraped, by scraper."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], float] = {}
        self._gaps: dict[str, list[float]] = {}

    def note(self, scraper: str, engine: int) -> None:
        now = time.monotonic()
        before = self._last.get((scraper, engine))
        self._last[scraper, engine] = now
        if before is not None:
            self._gaps.setdefault(scraper, []).append(now - before)

    def told(self) -> dict[str, list[float]]:
        """Seconds between two scrapes of one engine, of all engines, since this was last asked."""
        gaps, self._gaps = self._gaps, {}
        return gaps


class Connection(asyncio.Protocol):
    """HTTP/1.1, as much of it as scrapers speak."""

    def __init__(self, number: int, body: Body, scrapes: Scrapes) -> None:
        self._number, self._body, self._scrapes = number, body, scrapes
        self._received = b""
        self._to_swallow = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._to_swallow:
            self._to_swallow -= len(data)
            if self._to_swallow <= 0:
                self._to_swallow = 0
                self._transport.write(_ACCEPTED)
            return
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        self._received = b""
        if head.startswith(b"POST"):
            length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
            self._to_swallow = length - len(rest)
            if self._to_swallow == 0:
                self._transport.write(_ACCEPTED)
        else:
            self._transport.write(self._answer(head))

    def _answer(self, head: bytes) -> bytes:
        path = head.split(b" ", 2)[1]
        if path == b"/metrics":
            self._scrapes.note("vmagent" if VMAGENT in head else "pinchpoint", self._number)
            body, kind = self._body.answer(), _TEXT
        elif path == b"/health":
            body, kind = b"", _TEXT
        elif path == b"/version":
            body, kind = b'{"version":"0.33.0"}', _JSON
        else:
            return _UNKNOWN
        return _OK % (kind, len(body), body)


async def main(engines: int) -> None:
    loop, scrapes = asyncio.get_running_loop(), Scrapes()
    ports = []
    for number in range(engines):
        answer = partial(Connection, number, Body(number), scrapes)
        server = await loop.create_server(answer, "127.0.0.1", 0, backlog=16)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(scrapes.told()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
