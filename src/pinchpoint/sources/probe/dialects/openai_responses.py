"""The OpenAI Responses dialect: typed events, of which the last holds the whole response once more.

Source: OpenAI's API reference, "Responses streaming events". There is no ``[DONE]``: ``response.completed``,
``response.incomplete``, ``response.failed`` or ``error`` is the end.
"""

from typing import ClassVar

from pinchpoint.sources.probe.dialects.decoding import count, decode, error_in, inside, words
from pinchpoint.sources.probe.dialects.dialect import Dialect, DialectName
from pinchpoint.sources.probe.dialects.parameters import Parameters
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

_DELTAS = {
    "response.output_text.delta": TextKind.CONTENT,
    "response.refusal.delta": TextKind.REFUSAL,
    "response.reasoning_text.delta": TextKind.REASONING,  # of models with open weights
    "response.reasoning_summary_text.delta": TextKind.SUMMARY,
    "response.function_call_arguments.delta": TextKind.TOOL,
    "response.custom_tool_call_input.delta": TextKind.TOOL,
    "response.mcp_call_arguments.delta": TextKind.TOOL,
}
_ENDS = {"response.completed": "stop", "response.incomplete": "incomplete"}
_INCOMPLETE = {"max_output_tokens": "length", "content_filter": "content_filter"}
_FAILED = ("response.failed", "response.cancelled")


class OpenAIResponses(Dialect):
    """``POST /responses``, nothing stored."""

    name = DialectName.OPENAI_RESPONSES
    path = "/responses"
    optional: ClassVar = {
        "temperature": ("temperature",),
        "reasoning_effort": ("reasoning",),
        "storage": ("'store'", '"store"', "store "),
    }
    token_fields = ("max_output_tokens",)

    def body(self, model: str, prompt: str, parameters: Parameters) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "input": prompt,
            "stream": True,
            "max_output_tokens": parameters.max_tokens,
        }
        if parameters.storage:
            body["store"] = False
        if parameters.temperature is not None:
            body["temperature"] = parameters.temperature
        if parameters.reasoning_effort is not None:
            body["reasoning"] = {"effort": parameters.reasoning_effort}
        return body | dict(parameters.extra_body)

    def interpret(self, event: SseEvent) -> StreamEvent:
        chunk = decode(event)
        if isinstance(chunk, StreamEvent):
            return chunk
        sort = words(chunk.get("type")) or event.name
        text = words(chunk.get("delta"))
        finish = _ENDS.get(sort)
        if finish == "incomplete":
            finish = _INCOMPLETE.get(words(inside(chunk, "response", "incomplete_details", "reason")), finish)
        error = error_in(chunk, event)
        if sort in _FAILED:
            error = error or inside(chunk, "response", "error") or chunk
        return StreamEvent(
            text=_DELTAS.get(sort) if text else None,
            characters=len(text) if sort in _DELTAS else 0,
            usage=_usage(inside(chunk, "response", "usage")),
            finish_reason=finish,
            error=error,
            choices=sort.startswith("response."),
            reasoned=sort == "response.output_item.added" and inside(chunk, "item", "type") == "reasoning",
            done=finish is not None,
        )


def _usage(usage: object) -> Usage | None:
    found = Usage(
        prompt_tokens=count(usage, "input_tokens"),
        completion_tokens=count(usage, "output_tokens"),
        reasoning_tokens=count(usage, "output_tokens_details", "reasoning_tokens"),
        cached_tokens=count(usage, "input_tokens_details", "cached_tokens"),
    )
    return None if found == Usage() else found
