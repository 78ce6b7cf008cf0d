"""HTML that is safe by construction: whatever is not ``Html`` is escaped and cut on its way in.

Engine names, model names and details come from other machines. There is one way to write a tag here, and it escapes.
"""

from collections.abc import Iterable
from html import escape
from typing import TypeAlias
from unicodedata import category

MAX_TEXT = 400  # characters of one piece of foreign text; the style sheet cuts what is still too wide

_UNSEEN = ("Cc", "Cs")
_VOID = frozenset({"meta", "link", "rect", "line", "path", "use", "polyline", "polygon", "circle"})


class Html(str):
    """Markup that is finished: escaped, or made of our own numbers alone. Never wrap foreign text in it."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"


def text(value: str) -> Html:
    """One piece of text, cut to ``MAX_TEXT`` characters and escaped for elements and quoted attributes.

    What can't be seen (control characters, half of a surrogate pair) is shown to be there.
    """
    cut = value if len(value) <= MAX_TEXT else value[: MAX_TEXT - 1] + "…"
    if not cut.isprintable():
        cut = "".join("\ufffd" if category(each) in _UNSEEN else each for each in cut)
    return Html(escape(cut, quote=True))


def join(*children: Child) -> Html:
    """Children one after the other; ``None`` is nothing."""
    return Html("".join(_parts(children)))


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield text(child)
        elif child is not None:
            yield from _parts(child)


def el(tag: str, /, *children: Child, **attributes: str | float | bool | None) -> Html:
    """One element. ``class_`` is class, ``aria_label`` aria-label; ``None`` and ``False`` leave an attribute out."""
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID and not children:
        return Html(f"<{tag}{written}>" if tag in ("meta", "link") else f"<{tag}{written}/>")
    return Html(f"<{tag}{written}>{join(*children)}</{tag}>")


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{value if isinstance(value, Html) else text(str(value))}"'


def name(value: str, class_: str | None = None) -> Html:
    """A foreign name: isolated, so that right-to-left marks in it turn nothing else around; whole in its tooltip."""
    return el("bdi", value, class_=" ".join(filter(None, ("name", class_))), title=value)
