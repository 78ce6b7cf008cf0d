"""What the web server serves: bytes that were rendered once, swapped in as one object."""

import gzip
from dataclasses import dataclass

from pinchpoint.outputs.scene import Scene

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


class Rendered:
    """One body. It is gzipped at most once, when first asked for so: most ticks are never scraped."""

    __slots__ = ("_gzipped", "plain")

    def __init__(self, plain: bytes) -> None:
        self.plain = plain
        self._gzipped: bytes | None = None

    def gzipped(self) -> bytes:
        """The body as gzip. The first call takes milliseconds: not on the event loop, unless ``is_gzipped``."""
        if self._gzipped is None:
            self._gzipped = gzip.compress(self.plain, compresslevel=1, mtime=0)  # 5 times faster than 9, 20 % larger
        return self._gzipped

    @property
    def is_gzipped(self) -> bool:
        return self._gzipped is not None


@dataclass(frozen=True, slots=True)
class Published:
    """The newest tick in every form that is served. A request picks; it renders no metric and waits for nothing."""

    scene: Scene
    text: Rendered
    openmetrics: Rendered
