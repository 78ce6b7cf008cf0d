"""The OpenAI chat dialect: what is asked, what each event of the answer means, and what to ask after a refusal.

Sources: OpenAI's API
reference (chat completion chunks, ``stream_options``); vLLM's ``continuous_usage_stats``, ``ignore_eos`` and
``min_tokens``; ``reasoning`` and ``reasoning_content`` are two spellings that vLLM and its peers have used for the
same text.
"""

import json
from dataclasses import replace
from typing import Any

from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.parameters import Parameters, not_accepted, without
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

MAX_TOKENS = 10**9  # a count above it is none: JSON has whole numbers of a hundred digits

_FIELDS = {  # in this order, so that an event which carries both counts as visible content
    "content": TextKind.CONTENT,
    "reasoning": TextKind.REASONING,
    "reasoning_content": TextKind.REASONING,
    "refusal": TextKind.REFUSAL,
}
_WORDS = {
    "continuous_usage": ("continuous_usage",),
    "stream_usage": ("stream_options", "include_usage"),
    "ignore_eos": ("ignore_eos", "min_tokens"),
    "temperature": ("temperature",),
}


class OpenAIChat(Dialect):
    """``POST /chat/completions``."""

    name = DialectName.OPENAI_CHAT
    path = "/chat/completions"

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        return request_body(model, prompt, parameters)

    def interpret(self, event: SseEvent) -> StreamEvent:
        return interpret(event)

    def repaired(self, parameters: Parameters, refusal: str) -> Parameters | None:
        return repaired(parameters, refusal)


def request_body(model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
    """One streaming chat completion. The prompt is the only message: a system text would come before its nonce."""
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


def repaired(parameters: Parameters, refusal: str) -> Parameters | None:
    """The parameters without the one that a 400 or 422 names as not accepted; ``None`` when none of ours is to blame.

    ``refusal`` is the error's text, ``param`` and codes included. Every repair can happen once, so retries end.
    """
    text = refusal.lower()
    if not not_accepted(text):
        return None
    if (milder := without(parameters, text, _WORDS)) is not None:
        return milder
    # "Use max_completion_tokens instead" names both fields: the one that was sent is the wrong one.
    if parameters.token_field in text and not parameters.token_field_tried:
        other = "max_completion_tokens" if parameters.token_field == "max_tokens" else "max_tokens"  # noqa: S105
        return replace(parameters, token_field=other, token_field_tried=True)
    return None


def interpret(event: SseEvent) -> StreamEvent:
    """What one event says. Total: whatever a server sends is an event, at worst a malformed one."""
    data = event.data.strip()
    if data == "[DONE]":
        return StreamEvent(done=True)
    if not data or data.startswith(":") or event.name == "ping":
        return StreamEvent()  # a keepalive in a data line
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return StreamEvent(error=data) if event.name == "error" else StreamEvent(malformed=True)
    if isinstance(chunk, list) and chunk:
        chunk = chunk[0]
    if not isinstance(chunk, dict):
        return StreamEvent(error=data) if event.name == "error" else StreamEvent(malformed=True)
    return _interpret_chunk(chunk, named_error=event.name == "error")


def _interpret_chunk(chunk: dict[str, Any], *, named_error: bool) -> StreamEvent:
    choices = chunk.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    error = chunk.get("error") or choice.get("error")
    if not error and (named_error or chunk.get("object") == "error" or chunk.get("type") == "error"):
        error = chunk
    delta = choice.get("delta")
    kind, characters = _text(delta) if isinstance(delta, dict) else (None, 0)
    finish = choice.get("finish_reason")
    return StreamEvent(
        text=kind,
        characters=characters,
        usage=usage_of(chunk.get("usage")),
        finish_reason=finish if isinstance(finish, str) and finish else None,
        error=error or None,
        choices=bool(choice),
    )


def _text(delta: dict[str, Any]) -> tuple[TextKind | None, int]:
    kind, characters = None, 0
    for name, sort in _FIELDS.items():
        text = delta.get(name)
        if isinstance(text, str) and text:
            kind, characters = kind or sort, characters + len(text)
    if kind is None and (delta.get("tool_calls") or delta.get("function_call")):
        kind = TextKind.TOOL
    return kind, characters


def usage_of(usage: object) -> Usage | None:
    """The token counts of a ``usage`` object; ``None`` when there is none or it holds no number."""
    if not isinstance(usage, dict):
        return None
    found = Usage(
        prompt_tokens=_count(usage, "prompt_tokens"),
        completion_tokens=_count(usage, "completion_tokens"),
        reasoning_tokens=_count(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=_count(usage.get("prompt_tokens_details"), "cached_tokens"),
    )
    return None if found == Usage() else found


def _count(holder: object, name: str) -> int | None:
    number = holder.get(name) if isinstance(holder, dict) else None
    if not isinstance(number, int) or isinstance(number, bool):
        return None
    return number if 0 <= number <= MAX_TOKENS else None
