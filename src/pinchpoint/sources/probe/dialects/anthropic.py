"""The Anthropic Messages dialect: named events around content blocks.

Source: Anthropic's API reference (streaming messages, thinking, errors). What its models show of their thinking is a
summary or nothing at all; what they bill is all of it.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pinchpoint.sources.probe.dialects.decoding import count, decode, error_in, inside, words
from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.parameters import Parameters
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

VERSION = "2023-06-01"

_DELTAS = {"text": TextKind.CONTENT, "thinking": TextKind.SUMMARY, "partial_json": TextKind.TOOL}
_FINISH = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "refusal": "content_filter"}


class Anthropic(Dialect):
    """``POST /v1/messages``. ``api_version`` is the header ``anthropic-version``."""

    name = DialectName.ANTHROPIC
    versioned = True
    path = "/messages"
    optional: ClassVar = {"temperature": ("temperature",), "reasoning_effort": ("effort", "output_config")}
    token_fields = ("max_tokens",)

    def headers(self, key: str) -> Mapping[str, str]:
        version = {"anthropic-version": self._api_version or VERSION}
        return version | ({"x-api-key": key} if key else {})

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "max_tokens": parameters.max_tokens,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
        }
        if parameters.temperature is not None:
            body["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            body["output_config"] = {"effort": parameters.reasoning_effort}
        return body | dict(parameters.extra_body)

    def interpret(self, event: SseEvent) -> StreamEvent:
        chunk = decode(event)
        if isinstance(chunk, StreamEvent):
            return chunk
        sort = words(chunk.get("type")) or event.name
        kind, characters = _text(sort, chunk)
        stop = words(inside(chunk, "delta", "stop_reason"))
        return StreamEvent(
            text=kind,
            characters=characters,
            usage=_usage(chunk.get("usage") or inside(chunk, "message", "usage")),
            finish_reason=_FINISH.get(stop, stop) or None,
            error=error_in(chunk, event),
            choices=sort.startswith(("message_", "content_block_")),
            reasoned=words(inside(chunk, "content_block", "type")) in ("thinking", "redacted_thinking"),
            done=sort == "message_stop",
        )


def _text(sort: str, chunk: dict[str, Any]) -> tuple[TextKind | None, int]:
    holder = chunk.get({"content_block_delta": "delta", "content_block_start": "content_block"}.get(sort, ""))
    for name, kind in _DELTAS.items():
        if text := words(inside(holder, name)):
            return kind, len(text)
    called = sort == "content_block_start" and words(inside(holder, "type")).endswith("tool_use")
    return (TextKind.TOOL, 0) if called else (None, 0)


def _usage(usage: object) -> Usage | None:
    # input_tokens leaves out what the cache gave and took.
    cached = count(usage, "cache_read_input_tokens")
    fresh = count(usage, "input_tokens")
    found = Usage(
        prompt_tokens=None
        if fresh is None
        else fresh + (cached or 0) + (count(usage, "cache_creation_input_tokens") or 0),
        completion_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(usage, "output_tokens_details", "thinking_tokens"),
        cached_tokens=cached,
    )
    return None if found == Usage() else found
