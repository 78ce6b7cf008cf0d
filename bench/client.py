"""A scraper that costs next to nothing itself: raw sockets, requests made beforehand, a monotonic clock."""

import random
import socket
import time
from dataclasses import dataclass
from typing import Self

TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
PAUSE_SECONDS = 0.010  # on average: a client that waits only for answers would meet too few of the slow moments


@dataclass(frozen=True, slots=True)
class Way:
    """One way to scrape."""

    name: str
    accept: str
    encoding: str
    keep_alive: bool = True
    path: str = "/metrics"


PROMETHEUS = Way("OpenMetrics, gzip", OPENMETRICS, "gzip")  # what Prometheus asks for, on a connection that it keeps
WAYS = (
    Way("text", TEXT, "identity"),
    Way("text, gzip", TEXT, "gzip"),
    Way("OpenMetrics", OPENMETRICS, "identity"),
    PROMETHEUS,
    Way("OpenMetrics, gzip, new connection", OPENMETRICS, "gzip", keep_alive=False),
)


class Client:
    """Scrapes ``port`` in one way. Opens a connection where there is none, within the time that is measured."""

    def __init__(self, port: int, way: Way) -> None:
        self._port, self._keep_alive = port, way.keep_alive
        self._request = (
            f"GET {way.path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: {way.accept}\r\n"
            f"Accept-Encoding: {way.encoding}\r\nConnection: {'keep-alive' if way.keep_alive else 'close'}\r\n\r\n"
        ).encode()
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._socket:
            self._socket.close()

    def scrapes(self, count: int) -> list[float]:
        """Seconds of each of ``count`` scrapes, at random moments."""
        found = []
        for _ in range(count):
            time.sleep(random.uniform(0, 2 * PAUSE_SECONDS))
            started = time.perf_counter()
            self.scrape()
            found.append(time.perf_counter() - started)
        return found

    def scrape(self) -> bytes:
        """The body as it came. Raises ``RuntimeError`` on any status but 200."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=30)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(self._request)
        received = bytearray()
        while (split := received.find(b"\r\n\r\n")) < 0:
            received += self._receive()
        head = received[:split].decode("latin-1").lower()
        if " 200 " not in head.split("\r\n", 1)[0]:
            raise RuntimeError(f"port {self._port} answered {head!r}")
        length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
        while len(received) < split + 4 + length:
            received += self._receive()
        if not self._keep_alive or head.startswith("http/1.0") or "connection: close" in head:
            self._socket.close()
            self._socket = None
        return bytes(received[split + 4 :])

    def _receive(self) -> bytes:
        assert self._socket is not None
        if piece := self._socket.recv(1 << 20):
            return piece
        raise RuntimeError(f"port {self._port} closed the connection in the middle of an answer")
