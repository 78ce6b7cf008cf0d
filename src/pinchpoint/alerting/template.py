"""Renders the texts of alerts: the part of Go's templates, with Prometheus' functions, that the catalogue needs.

``{{ $value }}`` and ``{{ $labels.name }}`` (empty where there is no such label), alone or through humanize,
humanize1024, humanizePercentage, humanizeDuration or a ``printf`` with one verb (``%.2f``, ``%.3g``, ``%v``). Is not:
Go's templates. No variables, no if, range and with, no query.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from pinchpoint.alerting.go_text import HUMANIZED, formatted, plain
from pinchpoint.alerting.labels import Labels

_Value = str | float
_Text = Callable[[Mapping[str, str], float], str]  # of the labels and the value

_ACTION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_FUNCTION = r'(?:(?P<name>humanize\w*)|printf\s+"(?P<before>[^"\\%]*)%(?P<verb>v|\.\d[fge])(?P<after>[^"\\%]*)")'
_FIRST = re.compile(rf"(?:{_FUNCTION}\s+)?\$(?:labels\.(?P<label>\w+)|value)")
_NEXT = re.compile(_FUNCTION)


class TemplateError(ValueError):
    """One line: what of a template is outside the subset, or can't be done with the value it is given."""


def render(template: str, labels: Labels | Mapping[str, str], value: float) -> str:
    """The text for an alert with these labels and this value. Raises ``TemplateError`` outside the subset."""
    named = dict(labels)
    return "".join(part(named, value) for part in compile_template(template))


@lru_cache(512)
def compile_template(template: str) -> tuple[_Text, ...]:
    """The template's parts in order. Raises ``TemplateError`` for one outside the subset."""
    pieces = _ACTION.split(template)  # text and actions in turn
    stray = next((piece for piece in pieces[::2] if "{{" in piece), None)
    if stray is not None:
        raise TemplateError("{{ without }}")
    return tuple(_action(piece) if number % 2 else _constant(piece) for number, piece in enumerate(pieces))


def _constant(text: str) -> _Text:
    return lambda _labels, _value: text


def _action(text: str) -> _Text:
    first, *others = (part.strip() for part in text.split("|"))
    begun = _FIRST.fullmatch(first)
    continued = [_NEXT.fullmatch(other) for other in others]
    if begun is None or None in continued:
        raise TemplateError(f"{{{{{text}}}}} is outside the subset")
    label = begun["label"]
    functions = [_function(found) for found in (begun, *continued) if found and (found["name"] or found["verb"])]

    def told(labels: Mapping[str, str], value: float) -> str:
        result: _Value = value if label is None else labels.get(label, "")
        for function in functions:
            result = function(result)
        return result if isinstance(result, str) else plain(result)

    return told


def _function(found: re.Match[str]) -> Callable[[_Value], str]:
    if found["name"]:
        if found["name"] not in HUMANIZED:
            raise TemplateError(f"the function {found['name']} is outside the subset")
        words = HUMANIZED[found["name"]]
        return lambda value: words(_number(value))
    before, verb, after = found["before"], found["verb"], found["after"]
    if verb == "v":
        return lambda value: f"{before}{value if isinstance(value, str) else plain(value)}{after}"
    return lambda value: f"{before}{formatted(_number(value), verb)}{after}"


def _number(value: _Value) -> float:
    if isinstance(value, str):
        raise TemplateError(f"{value!r} is a text and no number")
    return value
