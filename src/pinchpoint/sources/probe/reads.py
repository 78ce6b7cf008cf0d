"""Which bytes of a body came with which read of the socket. Pure.

By the time that a task gets to a body, several reads may have come together in it, and each waited a little: a stamp
taken then would be late, and the same for all of them.
"""

from collections import deque
from collections.abc import Iterator

MAX_MARKS = 4096  # reads that nobody has asked for yet: a peer that sends byte by byte gets no more memory than this


class Reads:
    """The stamps of one answer's reads. ``head_ns`` is that of the read which completed its head."""

    def __init__(self) -> None:
        self.head_ns: int | None = None
        self._marks: deque[tuple[int, int]] = deque()  # up to which byte of the body a read went, and its stamp
        self._position = 0  # in the body, of the next byte to be cut

    def mark(self, end: int, at_ns: int) -> None:
        """A read came in at ``at_ns``, and with it the body is ``end`` bytes long."""
        if len(self._marks) < MAX_MARKS and end > (self._marks[-1][0] if self._marks else self._position):
            self._marks.append((end, at_ns))

    def cut(self, data: bytes, now_ns: int) -> Iterator[tuple[bytes, int]]:
        """The next bytes of the body, read by read, each with its stamp; ``now_ns`` for those that have none."""
        begin = 0
        while begin < len(data):
            while self._marks and self._marks[0][0] <= self._position:
                self._marks.popleft()
            end, at_ns = self._marks[0] if self._marks else (self._position + len(data), now_ns)
            size = min(end - self._position, len(data) - begin)
            yield data[begin : begin + size], at_ns
            begin += size
            self._position += size
