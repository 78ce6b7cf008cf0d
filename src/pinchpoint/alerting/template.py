"""Renders the texts of alerts: the part of Go's templates, with Prometheus' functions, that the catalogue needs.

``{{ $labels.name }}`` (empty where there is no such label), ``{{ $value }}``, numbers and strings; ``|`` and calls of
humanize, humanize1024, humanizePercentage, humanizeDuration, printf (``%s %v %.2f %.3g``), match, eq, ne and
not; if, else if, else; ``{{-`` and ``-}}``. Is not: Go's templates. No variables, no range, no with, no query.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from pinchpoint.alerting.labels import Labels
from pinchpoint.alerting.pipeline import Given, TemplateError, Term, as_text, pipeline

_Text = Callable[[Given], str]
_Pieces = list[tuple[bool, str]]  # text (False) and actions (True), in turn

_ACTION = re.compile(r"\s*\{\{-\s(.*?)\}\}|\{\{(.*?)\}\}", re.DOTALL)


def render(template: str, labels: Labels | Mapping[str, str], value: float) -> str:
    """The text for an alert with these labels and this value. Raises ``TemplateError`` outside the subset."""
    return compile_template(template)(Given(dict(labels), value))


@lru_cache(512)
def compile_template(template: str) -> _Text:
    """The template, ready to be rendered. Raises ``TemplateError`` for one outside the subset."""
    pieces = list(_pieces(template))
    text, ended_by = _block(pieces)
    if ended_by is not None:
        raise TemplateError(f"{{{{ {ended_by} }}}} without {{{{ if }}}}")
    return text


def _pieces(template: str) -> Iterator[tuple[bool, str]]:
    """The template's pieces, with the space that ``{{-`` and ``-}}`` eat gone."""
    at, eats = 0, False
    for action in _ACTION.finditer(template):
        text = template[at : action.start()]
        yield False, text.lstrip() if eats else text
        inside = action[1] if action[1] is not None else action[2]
        eats = re.search(r"\s-$", inside) is not None
        yield True, inside.removesuffix("-").strip() if eats else inside.strip()
        at = action.end()
    yield False, template[at:].lstrip() if eats else template[at:]


def _block(pieces: _Pieces) -> tuple[_Text, str | None]:
    """What stands before the end, an else, or the end of all: and which of these it was. Takes it from ``pieces``."""
    parts: list[_Text] = []
    while pieces:
        is_action, text = pieces.pop(0)
        if not is_action:
            parts.append(_constant(text))
        elif text == "end" or text.partition(" ")[0] == "else":
            return _joined(parts), text
        elif text.startswith("if "):
            parts.append(_choice(text.removeprefix("if "), pieces))
        elif not text.startswith("/*"):
            parts.append(_told(pipeline(text)))
    return _joined(parts), None


def _constant(text: str) -> _Text:
    return lambda _: text


def _told(term: Term) -> _Text:
    return lambda given: as_text(term(given))


def _joined(parts: list[_Text]) -> _Text:
    return lambda given: "".join(part(given) for part in parts)


def _choice(condition: str, pieces: _Pieces) -> _Text:
    holds = pipeline(condition)
    then, ended_by = _block(pieces)
    otherwise = _constant("")
    if ended_by is not None and ended_by.startswith("else if "):
        otherwise = _choice(ended_by.removeprefix("else if "), pieces)
    elif ended_by == "else":
        otherwise, ended_by = _block(pieces)
        if ended_by != "end":
            raise TemplateError("{{ else }} without {{ end }}")
    elif ended_by != "end":
        raise TemplateError("{{ if }} without {{ end }}")
    return lambda given: then(given) if holds(given) else otherwise(given)
