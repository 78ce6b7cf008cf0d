"""The OpenAI-compatible side of a simulated engine: what it accepts, what it refuses, what its answers look like.

Shapes and messages are those of vLLM's server. The text is filler: only its length and its timing mean anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pinchpoint.simulator.engine.spec import EngineSpec

_WORDS = (" the", " cache", " holds", " every", " token", " until", " its", " request", " is", " done", " and", " then")
_TEMPLATE_TOKENS = 8  # what a chat template adds
_CHARACTERS_PER_TOKEN = 4


class Refusal(Exception):  # noqa: N818 - an answer, not a defect
    """An HTTP error answer in vLLM's shape."""

    def __init__(self, status: int, message: str, kind: str = "BadRequestError", param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """A request that was accepted. ``max_tokens`` is ``None`` when the client left it open."""

    prompt_tokens: int
    max_tokens: int | None
    stream: bool
    include_usage: bool
    ignore_eos: bool


def parse_chat(raw: bytes, content_type: str, spec: EngineSpec) -> ChatCall:
    """Read a chat completion body. Raises ``Refusal`` as the real server refuses."""
    body = _json_object(raw, content_type)
    stream = body.get("stream") is True
    if body.get("stream_options") and not stream:
        message = "Stream options can only be defined when `stream=True`. (parameter=stream_options)"
        raise Refusal(400, message, param="stream_options")
    model = body.get("model", spec.model)
    if model != spec.model:
        message = f"The model `{str(model)[:200]}` does not exist. Valid aliases: {spec.model}."
        raise Refusal(404, message, "NotFoundError", "model")
    prompt_tokens = _prompt_tokens(body.get("messages"))
    if prompt_tokens >= spec.max_model_len:
        message = (
            f"This model's maximum context length is {spec.max_model_len} tokens. However, your prompt contains at "
            f"least {spec.max_model_len + 1} input tokens, which exceeds this limit even without any output tokens. "
            f"Please reduce the length of the input prompt. (parameter=input_tokens, value={spec.max_model_len + 1})"
        )
        raise Refusal(400, message, param="input_tokens")
    options = body.get("stream_options")
    return ChatCall(
        prompt_tokens=prompt_tokens,
        max_tokens=_max_tokens(body, spec),
        stream=stream,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        ignore_eos=body.get("ignore_eos") is True,
    )


def _json_object(raw: bytes, content_type: str) -> Mapping[str, Any]:
    if content_type != "application/json":
        raise _invalid("Unsupported Media Type: Only 'application/json' is allowed", None)
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        place = f"body.{getattr(error, 'pos', 0)}"
        detail = {"type": "json_invalid", "loc": place, "msg": "JSON decode error", "ctx": {"error": "Expecting value"}}
        raise _invalid(str(detail), place) from None
    if not isinstance(body, dict):
        raise _invalid(
            str({"type": "model_attributes_type", "loc": "body", "msg": "Input should be an object"}), "body"
        )
    return body


def _invalid(detail: str, param: str | None) -> Refusal:
    return Refusal(400, f"1 validation error:\n  {detail}", "Bad Request", param)


def _prompt_tokens(messages: object) -> int:
    if messages is None:
        missing = {"type": "missing", "loc": "body.messages", "msg": "Field required"}
        raise _invalid(str(missing), "body.messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise _invalid(str({"type": "list_type", "loc": "body.messages"}), "body.messages")
    if not messages:
        raise Refusal(400, "Cannot apply chat template to an empty conversation. Provide at least one message.")
    characters = 0
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        characters += sum(len(str(part.get("text") or "")) for part in parts if isinstance(part, dict))
    return _TEMPLATE_TOKENS + 4 * len(messages) + characters // _CHARACTERS_PER_TOKEN


def _max_tokens(body: Mapping[str, Any], spec: EngineSpec) -> int | None:
    value = body.get("max_completion_tokens", body.get("max_tokens"))
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        message = "Input should be a valid integer, unable to parse string as an integer"
        detail = {"type": "int_parsing", "loc": "body.max_tokens", "msg": message, "input": str(value)[:100]}
        raise _invalid(str(detail), "body.max_tokens")
    if value < 1:
        message = f"max_tokens must be at least 1, got {value}. (parameter=max_tokens, value={value})"
        raise Refusal(400, message, param="max_tokens")
    if value > spec.max_model_len:
        message = (
            f"max_tokens={value} cannot be greater than max_model_len={spec.max_model_len}. Please request fewer "
            f"output tokens. (parameter=max_tokens, value={value})"
        )
        raise Refusal(400, message, param="max_tokens")
    return value


def token_text(position: int) -> str:
    """The filler for the token at ``position`` (0 is the first)."""
    return _WORDS[position % len(_WORDS)]


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def completion(
    identity: str, created: int, model: str, text: str, finish: str, used: Mapping[str, int]
) -> dict[str, Any]:
    """The answer to a request that does not stream."""
    message = {"role": "assistant", "content": text, "refusal": None, "reasoning": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    return {
        "id": identity,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [choice],
        "usage": dict(used),
    }


def chunk(
    identity: str,
    created: int,
    model: str,
    delta: Mapping[str, str] | None,
    finish: str | None = None,
    used: Mapping[str, int] | None = None,
) -> bytes:
    """One server-sent event. Without a ``delta`` it has no choices: the usage chunk at the end."""
    choices = [] if delta is None else [{"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}]
    body: dict[str, Any] = {
        "id": identity,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": choices,
    }
    if used is not None:
        body["usage"] = dict(used)
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"
