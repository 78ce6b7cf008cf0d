"""What all dialects read alike: an event's data as a JSON object, an error in any shape, a count. Pure."""

import json
from typing import Any

from pinchpoint.sources.probe.event import StreamEvent
from pinchpoint.sources.probe.sse import SseEvent

MAX_TOKENS = 10**9  # a count above it is none: JSON has whole numbers of a hundred digits


def decode(event: SseEvent) -> dict[str, Any] | StreamEvent:
    """The object in an event's data; or, where there is none, what the event means as it is.

    Keepalives come as comments, which the parser drops, but also as data: empty, with a colon first, or named ping.
    A list holds the object first (Gemini).
    """
    data = event.data.strip()
    if data == "[DONE]":
        return StreamEvent(done=True)
    if not data or data.startswith(":") or event.name == "ping":
        return StreamEvent()
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        chunk = None
    if isinstance(chunk, list) and chunk:
        chunk = chunk[0]
    if isinstance(chunk, dict):
        return chunk
    return StreamEvent(error=data) if event.name == "error" else StreamEvent(malformed=True)


def error_in(chunk: dict[str, Any], event: SseEvent) -> object:
    """The error that the chunk holds or is; ``None`` for none, which ``"error": null`` says too."""
    is_error = event.name == "error" or chunk.get("object") == "error" or chunk.get("type") == "error"
    return chunk.get("error") or (chunk if is_error else None)


def count(holder: object, *path: str) -> int | None:
    """The whole number at the end of the path, ``None`` where there is none or an impossible one."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(holder, int) or isinstance(holder, bool):
        return None
    return holder if 0 <= holder <= MAX_TOKENS else None


def inside(holder: object, *path: str | int) -> Any:
    """What is at the end of a path of keys and indexes, or ``None``: no server owes us a shape."""
    for step in path:
        if isinstance(step, str) and isinstance(holder, dict):
            holder = holder.get(step)
        elif isinstance(step, int) and isinstance(holder, list) and len(holder) > step:
            holder = holder[step]
        else:
            return None
    return holder


def words(value: object) -> str:
    """The text itself, ``""`` for anything that is none."""
    return value if isinstance(value, str) else ""


def names_in(document: object, field: str, name: str) -> tuple[str, ...] | None:
    """The texts called ``name`` of the objects in the list called ``field``; ``None`` where there is no such list."""
    listed = inside(document, field)
    if not isinstance(listed, list):
        return None
    return tuple(found for entry in listed if (found := words(inside(entry, name))))
