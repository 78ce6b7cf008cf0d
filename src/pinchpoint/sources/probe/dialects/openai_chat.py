"""The OpenAI chat dialect: what vLLM, SGLang, aggregators and most hosted APIs speak.

Sources: OpenAI's API reference (chat completion chunks, ``stream_options``); vLLM's ``continuous_usage_stats``,
``ignore_eos`` and ``min_tokens``; ``reasoning`` and ``reasoning_content`` are two spellings that vLLM and its peers
have used for the same text; what single providers do otherwise is named where it is read.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

from pinchpoint.sources.probe.dialects.decoding import count, decode, error_in, inside, words
from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.parameters import Parameters
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

_FIELDS = {  # in this order, so that an event which carries both counts as visible content
    "content": TextKind.CONTENT,
    "reasoning": TextKind.REASONING,
    "reasoning_content": TextKind.REASONING,
    "refusal": TextKind.REFUSAL,
    "text": TextKind.CONTENT,  # of a completion, which has no delta
}


class OpenAIChat(Dialect):
    """``POST /chat/completions``."""

    name = DialectName.OPENAI_CHAT
    path = "/chat/completions"
    optional: ClassVar = {
        "continuous_usage": ("continuous_usage",),
        "stream_usage": ("stream_options", "include_usage"),
        "ignore_eos": ("ignore_eos", "min_tokens"),
        "temperature": ("temperature",),
        "reasoning_effort": ("reasoning_effort",),
    }
    token_fields: ClassVar[tuple[str, ...]] = ("max_tokens", "max_completion_tokens")

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            parameters.token_field: parameters.max_tokens,
        }
        if parameters.stream_usage:
            body["stream_options"] = {"include_usage": True} | (
                {"continuous_usage_stats": True} if parameters.continuous_usage else {}
            )
        if parameters.ignore_eos:
            body |= {"ignore_eos": True, "min_tokens": parameters.max_tokens}
        if parameters.temperature is not None:
            body["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            body["reasoning_effort"] = parameters.reasoning_effort
        return body | dict(parameters.extra_body)

    def interpret(self, event: SseEvent) -> StreamEvent:
        chunk = decode(event)
        if isinstance(chunk, StreamEvent):
            return chunk
        choice = inside(chunk, "choices", 0)
        choice = choice if isinstance(choice, dict) else {}
        delta = choice.get("delta")
        delta = delta if isinstance(delta, dict) else {}
        kind, characters = _text(delta | {"text": choice.get("text")})
        # Moonshot puts the usage into the choice, Groq into a field of its own.
        usage = chunk.get("usage") or choice.get("usage") or inside(chunk, "x_groq", "usage")
        return StreamEvent(
            text=kind,
            characters=characters,
            usage=_usage(usage) if usage else None,
            finish_reason=words(choice.get("finish_reason")) or None,
            error=error_in(chunk, event) or choice.get("error") or None,
            choices=bool(choice),
            reasoned=bool(delta.get("reasoning_details")),  # OpenRouter's: encrypted ones have no text
        )


class OpenAICompletions(OpenAIChat):
    """``POST /completions``: for base models, which have no chat template and refuse to chat."""

    name = DialectName.OPENAI_COMPLETIONS
    path = "/completions"
    token_fields = ("max_tokens",)

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        body = super().body(model, prompt, parameters)
        del body["messages"]
        return body | {"prompt": prompt}


def _text(delta: dict[str, Any]) -> tuple[TextKind | None, int]:
    kind, characters = None, 0
    for name, sort in _FIELDS.items():
        value = delta.get(name)
        for found, text in _parts(value, sort) if value else ():
            kind, characters = kind or found, characters + len(text)
    if kind is None and (delta.get("tool_calls") or delta.get("function_call")):
        kind = TextKind.TOOL
    return kind, characters


def _parts(value: object, kind: TextKind) -> Iterator[tuple[TextKind, str]]:
    """The texts of a field, each with its kind: a plain one, or a list of parts (Mistral's reasoning models)."""
    if isinstance(value, str) and value:
        yield kind, value
    elif isinstance(value, list):
        for part in value:
            if isinstance(part, dict):
                yield from _parts(part.get("text"), kind)
                yield from _parts(part.get("thinking"), TextKind.REASONING)


def _usage(usage: object) -> Usage | None:
    cached = (
        count(usage, "prompt_tokens_details", "cached_tokens"),
        count(usage, "prompt_cache_hit_tokens"),  # DeepSeek
        count(usage, "cached_tokens"),  # Moonshot
    )
    found = Usage(
        prompt_tokens=count(usage, "prompt_tokens"),
        completion_tokens=count(usage, "completion_tokens"),
        reasoning_tokens=count(usage, "completion_tokens_details", "reasoning_tokens"),
        cached_tokens=next((number for number in cached if number is not None), None),
    )
    return None if found == Usage() else found
