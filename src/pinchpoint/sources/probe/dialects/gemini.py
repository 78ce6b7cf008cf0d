"""The Gemini dialect: ``streamGenerateContent``, as events only with ``alt=sse``.

Source: Google's Gemini API reference. There is no ``[DONE]``: a finish reason ends it. Thoughts are summaries, shown
only when asked for, but billed either way.
"""

import re
from collections.abc import Mapping
from typing import ClassVar

from pinchpoint.sources.probe.dialects.decoding import count, decode, error_in, inside, names_in, words
from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.parameters import Parameters
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

DEFAULT_VERSION = "v1beta"

_VERSION = re.compile(r"/v\d+[a-z]*\d*(?=/|$)")
_ENDPOINT = re.compile(r"/models(/[^/]*)?$")
_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
_FILTERED = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY")
_UNSET = ("", "FINISH_REASON_UNSPECIFIED")


class Gemini(Dialect):
    """``POST /v1beta/models/MODEL:streamGenerateContent?alt=sse``. ``api_version`` is the version in the path."""

    name = DialectName.GEMINI
    versioned = True
    path = "/models/{model}:streamGenerateContent?alt=sse"
    optional: ClassVar = {"temperature": ("temperature",), "reasoning_effort": ("thinking",)}
    token_fields = ("maxOutputTokens", "max_output_tokens")

    def roots(self, url: str) -> tuple[str, ...]:
        root = _ENDPOINT.sub("", url.rstrip("/"))
        version = self._api_version or DEFAULT_VERSION
        if not _VERSION.search(root):
            return (f"{root}/{version}", root)
        other = _VERSION.sub(f"/{version}", root)
        return (root,) if other == root else (root, other)

    def request_url(self, root: str, model: str) -> str:
        return super().request_url(root, model.removeprefix("models/"))

    def headers(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:  # noqa: ARG002 - it is in the path
        config: dict[str, object] = {"maxOutputTokens": parameters.max_tokens}
        if parameters.temperature is not None:
            config["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            config["thinkingConfig"] = {"thinkingLevel": parameters.reasoning_effort}
        contents = [{"role": "user", "parts": [{"text": prompt}]}]
        return {"contents": contents, "generationConfig": config} | dict(parameters.extra_body)

    def interpret(self, event: SseEvent) -> StreamEvent:
        chunk = decode(event)
        if isinstance(chunk, StreamEvent):
            return chunk
        candidate = inside(chunk, "candidates", 0)
        kind, characters, reasoned = _text(inside(candidate, "content", "parts"))
        blocked = words(inside(chunk, "promptFeedback", "blockReason")) not in ("", "BLOCK_REASON_UNSPECIFIED")
        finish = words(inside(candidate, "finishReason"))
        return StreamEvent(
            text=kind,
            characters=characters,
            usage=_usage(chunk.get("usageMetadata")),
            finish_reason="content_filter" if blocked else _finish(finish),
            error=error_in(chunk, event),
            choices=candidate is not None or blocked,
            reasoned=reasoned,
        )

    def listed_models(self, document: object) -> tuple[str, ...] | None:
        names = names_in(document, "models", "name")
        return None if names is None else tuple(name.removeprefix("models/") for name in names)


def _finish(reason: str) -> str | None:
    if reason in _UNSET:
        return None
    return "content_filter" if reason in _FILTERED else _FINISH.get(reason, reason.lower())


def _text(parts: object) -> tuple[TextKind | None, int, bool]:
    """Kind, characters, and whether the model thought. Content wins where one chunk holds both."""
    kinds: set[TextKind] = set()
    characters, thought = 0, False
    for part in parts if isinstance(parts, list) else ():
        text, is_thought = words(inside(part, "text")), bool(inside(part, "thought"))
        thought = thought or is_thought
        if text:
            kinds.add(TextKind.SUMMARY if is_thought else TextKind.CONTENT)
            characters += 0 if is_thought else len(text)
        elif inside(part, "functionCall") or inside(part, "executableCode"):
            kinds.add(TextKind.TOOL)
    order = (TextKind.CONTENT, TextKind.SUMMARY, TextKind.TOOL)
    return next((kind for kind in order if kind in kinds), None), characters, thought


def _usage(usage: object) -> Usage | None:
    # Google counts answer and thoughts apart.
    answer, thoughts = count(usage, "candidatesTokenCount"), count(usage, "thoughtsTokenCount")
    found = Usage(
        prompt_tokens=count(usage, "promptTokenCount"),
        completion_tokens=None if answer is None and thoughts is None else (answer or 0) + (thoughts or 0),
        reasoning_tokens=thoughts,
        cached_tokens=count(usage, "cachedContentTokenCount"),
    )
    return None if found == Usage() else found
