"""What the web server serves: bytes of one tick, swapped in as one object."""

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from pinchpoint.outputs.scene import Scene

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

_GZIP = 31  # the largest window, in gzip's format
_PIECES = 1000  # compressed at a time: hundreds of kilobytes


class Rendered:
    """One body, in pieces that are rendered already. It is put together, and gzipped, at most once, when first asked
    for so: most ticks are never scraped. Scrapes that come together share the work."""

    __slots__ = ("_gzipped", "_lock", "_pieces", "_plain")

    def __init__(self, body: bytes | Callable[[], Iterable[bytes]]) -> None:
        """``body``: all of it, or what gives its pieces, each time it is called."""
        self._plain = body if isinstance(body, bytes) else None
        self._pieces = (lambda: (body,)) if isinstance(body, bytes) else body
        self._gzipped: bytes | None = None
        self._lock = threading.Lock()

    @property
    def plain(self) -> bytes:
        """The body. Of many megabytes, the first call takes milliseconds: not on the loop, unless ``is_whole``."""
        with self._lock:
            if self._plain is None:
                self._plain = b"".join(self._pieces())
            return self._plain

    def gzipped(self) -> bytes:
        """The body as gzip. The first call takes milliseconds: not on the event loop, unless ``is_gzipped``."""
        with self._lock:
            if self._gzipped is None:  # without the whole body, of many megabytes, in memory
                zipped = zlib.compressobj(level=1, wbits=_GZIP)  # 5 times faster than level 9, for 20 % more
                chunks = [zipped.compress(b"".join(chunk)) for chunk in _batched(self._pieces(), _PIECES)]
                self._gzipped = b"".join((*chunks, zipped.flush()))
            return self._gzipped

    @property
    def is_whole(self) -> bool:
        return self._plain is not None

    @property
    def is_gzipped(self) -> bool:
        return self._gzipped is not None


def _batched(pieces: Iterable[bytes], number: int) -> Iterator[list[bytes]]:
    left = iter(pieces)
    while batch := list(islice(left, number)):
        yield batch


@dataclass(frozen=True, slots=True)
class Published:
    """The newest tick in every form that is served. A request picks; it renders no metric and waits for nothing."""

    scene: Scene
    text: Rendered
    openmetrics: Rendered
