"""What stands between the braces of a template: values, calls of functions, and ``|`` between them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pinchpoint.alerting.go_text import HUMANIZED, formatted, plain

Value = str | float | bool


class TemplateError(ValueError):
    """One line: what of a template is outside the subset, or can't be done with the value it is given."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a template is rendered with."""

    labels: Mapping[str, str]
    value: float


Term = Callable[[Given], Value]

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?P<number>[-+]?\d+(?:\.\d+)?)|\$labels\.(?P<label>\w+)'
    r"|(?P<value>\$value)|(?P<name>[a-zA-Z]\w*)|(?P<mark>[|()]))"
)
_VERB = re.compile(r"%(?:(?P<percent>%)|(?P<how>[-+ 0]*\d*(?:\.\d+)?)(?P<verb>[svfge]))|%")


def as_text(value: Value) -> str:
    """The value as Go prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else plain(value)


def pipeline(text: str) -> Term:
    """What stands between the braces. Raises ``TemplateError`` for what is outside the subset."""
    tokens = list(_tokens(text))
    term = _piped(tokens)
    if tokens:
        raise TemplateError(f"{{{{ {text} }}}}: {tokens[0][1]!r} stands where nothing should")
    return term


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise TemplateError(f"{{{{ {text} }}}}: {text[at:].strip()!r} is outside the subset")
        kind = str(found.lastgroup)
        yield kind, found[kind]
        at = found.end()


def _piped(tokens: list[tuple[str, str]]) -> Term:
    """A command, the value of which is the last argument of the next."""
    term = _command(tokens, None)
    while tokens and tokens[0] == ("mark", "|"):
        tokens.pop(0)
        term = _command(tokens, term)
    return term


def _command(tokens: list[tuple[str, str]], last: Term | None) -> Term:
    if tokens and tokens[0][0] == "name":
        name = tokens.pop(0)[1]
        arguments = []
        while tokens and tokens[0] not in (("mark", "|"), ("mark", ")")):
            arguments.append(_operand(tokens))
        return _call(name, arguments if last is None else [*arguments, last])
    if last is not None:
        raise TemplateError("after | stands no function")
    return _operand(tokens)


def _operand(tokens: list[tuple[str, str]]) -> Term:
    kind, text = tokens.pop(0) if tokens else ("", "")
    match kind:
        case "string":
            told = text[1:-1] if text[0] == "`" else re.sub(r"\\(.)", r"\1", text[1:-1])
            return lambda _: told
        case "number":
            return lambda _: float(text)
        case "label":
            return lambda given: given.labels.get(text, "")
        case "value":
            return lambda given: given.value
        case "mark" if text == "(":
            inner = _piped(tokens)
            if not tokens or tokens.pop(0) != ("mark", ")"):
                raise TemplateError("a ( is not closed")
            return inner
    raise TemplateError(f"{text!r} stands where a value is wanted" if text else "a value is missing")


def _call(name: str, arguments: list[Term]) -> Term:
    function = _FUNCTIONS.get(name)
    if function is None:
        raise TemplateError(f"the function {name} is outside the subset")
    wanted = _ARGUMENTS.get(name)
    if not arguments or (wanted is not None and len(arguments) != wanted):
        raise TemplateError(f"{name} takes {wanted or 'at least 1'} arguments, not {len(arguments)}")
    return lambda given: function(*(argument(given) for argument in arguments))


def _printf(template: Value, *values: Value) -> str:
    left = list(values)

    def filled(verb: re.Match[str]) -> str:
        if verb["percent"]:
            return "%"
        if verb["verb"] is None or not left:
            raise TemplateError(f"printf {template!r} with {len(values)} values is outside the subset")
        value = left.pop(0)
        if verb["verb"] in "sv" and not verb["how"] and (verb["verb"] == "v" or isinstance(value, str)):
            return as_text(value)
        if verb["verb"] not in "fge" or isinstance(value, str | bool):
            raise TemplateError(f"printf {verb[0]} of {value!r} is outside the subset")
        if verb["verb"] == "g" and "." not in verb["how"]:
            raise TemplateError("printf %g without a precision is outside the subset")
        return formatted(value, verb["how"] + verb["verb"])

    text = _VERB.sub(filled, as_text(template))
    if left:
        raise TemplateError(f"printf {template!r} has no place for {len(left)} of its values")
    return text


def _humanized(words: Callable[[float], str]) -> Callable[..., Value]:
    def told(value: Value) -> str:
        try:
            return words(float(value))
        except ValueError:
            raise TemplateError(f"{value!r} is no number") from None

    return told


def _same(one: Value, other: Value) -> bool:
    if not (isinstance(one, str) and isinstance(other, str)):
        raise TemplateError("eq and ne compare texts only")
    return one == other


_FUNCTIONS: dict[str, Callable[..., Value]] = {
    **{name: _humanized(words) for name, words in HUMANIZED.items()},
    "printf": _printf,
    "match": lambda pattern, text: re.search(str(pattern), str(text)) is not None,
    "eq": _same,
    "ne": lambda one, other: not _same(one, other),
    "not": lambda value: not value,
}
_ARGUMENTS = {**dict.fromkeys(HUMANIZED, 1), "match": 2, "eq": 2, "ne": 2, "not": 1}
