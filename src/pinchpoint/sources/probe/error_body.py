"""A server's error, in whatever shape it came, as one flat value that rules can match on. Pure.

The shapes: OpenAI's ``{"error": {...}}``, older vLLM's flat ``{"object": "error", ...}``, ``{"error":
"Unauthorized"}``, FastAPI's ``{"detail": ...}``, Google's list, Mistral's message that is an object, ``{"success":
false, "message": ...}`` and ``{"code": 401, "msg": ...}`` of consoles and gateways, and messages that hold another
JSON document.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_MAX_DEPTH = 6  # a wrapper around a wrapper, each with its error object
_MAX_TEXT = 16_384
_CODES = ("code", "type", "status", "error_code", "err_code")
_MESSAGES = ("message", "msg", "error_msg", "errmsg", "err_msg")
_DECLARED_FAILURES = (
    {"success": False},
    {"status": "error"},
    {"status": "fail"},
    {"object": "error"},
    {"type": "error"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorFacts:
    """``codes`` are the error's code, type and status words; ``text`` everything it says (both lower case)."""

    codes: tuple[str, ...] = ()
    text: str = ""
    message: str = ""  # for people, as it came
    param: str | None = None
    status: int | None = None  # an HTTP status that the body names: aggregators hide the true one there

    def has_code(self, *words: str) -> bool:
        return any(word in code for code in self.codes for word in words)

    def says(self, *phrases: str) -> bool:
        return any(phrase in self.text for phrase in phrases) or self.has_code(*phrases)


def parse_json(body: str) -> Any:
    """The JSON value, or ``None`` when it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def is_error(document: object) -> bool:
    """Whether a parsed body of a 200 says that it is an error all the same. ``"error": null`` is none."""
    if isinstance(document, list) and document:
        document = document[0]
    if not isinstance(document, dict):
        return False
    if document.get("error") or any(failure.items() <= document.items() for failure in _DECLARED_FAILURES):
        return True
    return any(isinstance(document.get(name), str) and document[name] for name in _MESSAGES) and any(
        document.get(name) not in (None, 0, 200, "", "0", "200") for name in _CODES if name not in ("type", "status")
    )


def error_facts(error: object) -> ErrorFacts:
    """Flatten an error object, a whole body or a plain text. Total: what it can't read stays text."""
    levels = list(_levels(error, _MAX_DEPTH))
    codes, statuses = [], []
    for level in levels:
        for name in _CODES:
            value = level.get(name)
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                if str(value).isascii() and str(value).isdigit():
                    statuses.append(int(str(value)[:9]))
                else:
                    codes.append(str(value).lower()[:100])
    messages = [level[name] for level in levels for name in _MESSAGES if isinstance(level.get(name), str)]
    text = error if isinstance(error, str) else _dump(error)
    return ErrorFacts(
        codes=tuple(codes),
        text=text.lower()[:_MAX_TEXT],
        message=_message(error, levels, messages, text),
        param=next((level["param"] for level in levels if isinstance(level.get("param"), str)), None),
        status=next((status for status in reversed(statuses) if 400 <= status <= 599), None),
    )


def _message(error: object, levels: list[dict[str, Any]], messages: list[str], text: str) -> str:
    if messages:
        return messages[-1]  # the innermost: a wrapper's message only repeats it
    for level in levels:
        for name in ("error", "detail"):
            if isinstance(level.get(name), str):
                return str(level[name])
    return text if error else ""


def _levels(value: object, depth: int) -> Iterator[dict[str, Any]]:
    """The error object and those inside it, outermost first."""
    if depth == 0:
        return
    if isinstance(value, list) and value:
        yield from _levels(value[0], depth)
    elif isinstance(value, str) and "{" in value:
        yield from _levels(parse_json(value[value.find("{") : value.rfind("}") + 1]), depth - 1)
    elif isinstance(value, dict):
        yield value
        for name in ("error", "message", "innererror", "detail"):
            yield from _levels(value.get(name), depth - 1)


def _dump(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""
