"""An incremental parser of server-sent events over bytes. Pure: it knows no socket, no clock and no dialect.

Follows the WHATWG HTML standard, section 9.2.6: CRLF, LF and lone CR end a line, ``data`` lines of one event are
joined by a newline, one space after the colon is dropped, lines that start with a colon are comments, a leading BOM
is dropped. Any cut of the stream gives the same events, for lines are put together as bytes before they are decoded.

One deviation: ``close`` hands out what was pending, which the standard discards, because servers end on an
unterminated ``data: [DONE]``.
"""

import re
from dataclasses import dataclass

MAX_EVENT_BYTES = 4 * 1024 * 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


class StreamTooLargeError(ValueError):
    """An event, or the stream as a whole, grew past its limit."""


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One dispatched event. ``name`` is ``message`` unless the server gave another."""

    data: str
    name: str = "message"


class SseParser:
    """Feed it bytes as they come. Raises ``StreamTooLargeError`` when one event, over all its lines, is too large."""

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._partial: list[bytes] = []  # a line without its end
        self._size = 0  # bytes held: the partial line and the pending event's data
        self._data: list[str] = []
        self._name = ""
        self._after_cr = False  # a LF that comes next belongs to the CR that ended the last chunk
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """The events that this chunk completed."""
        if not chunk:
            return []
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        self._after_cr = chunk.endswith(b"\r")
        events: list[SseEvent] = []
        begin = 0
        for end in _LINE_END.finditer(chunk):
            self._hold(chunk[begin : end.start()])
            events.extend(self._end_line())
            begin = end.end()
        self._hold(chunk[begin:])
        return events

    def close(self) -> list[SseEvent]:
        """The stream has ended: the event that was still pending, if it has data."""
        return [*self._end_line(), *self._dispatch()] if self._partial else self._dispatch()

    def _hold(self, piece: bytes) -> None:
        if not piece:
            return
        self._size += len(piece)
        if self._size > self._max_event_bytes:
            raise StreamTooLargeError(f"an event is larger than {self._max_event_bytes} bytes")
        self._partial.append(piece)

    def _end_line(self) -> list[SseEvent]:
        raw = b"".join(self._partial)
        self._partial.clear()
        if self._at_start:
            raw, self._at_start = raw.removeprefix(_BOM), False
        if not raw:
            return self._dispatch()
        field, _, value = raw.decode("utf-8", errors="replace").partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        else:  # a comment or another field holds nothing of the event's data
            self._size -= len(raw)
            if field == "event":
                self._name = value[:100]
        return []

    def _dispatch(self) -> list[SseEvent]:
        events = [SseEvent("\n".join(self._data), self._name or "message")] if self._data else []
        self._data, self._name, self._size = [], "", 0
        return events
