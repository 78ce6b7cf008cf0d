"""A page on a terminal: labelled paragraphs that keep their indent, and bars.

Names come from other machines, and a terminal obeys control characters: none of theirs reaches it.
Colour only where a terminal shows it and ``NO_COLOR`` is not set. Where no terminal watches lines are not wrapped, so
that a search in them finds what it looks for.
"""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from pinchpoint.cli.exits import printable

_INDENT = 2
_LABEL = 11  # cells, the space after it included
_BAR = 16
_WIDEST = 110  # cells: longer lines are hard to read
_NARROWEST = 12  # cells of text: beyond that the terminal wraps


class Page:
    """Writes to standard output."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._wraps = self.console.is_terminal
        self.width = min(self.console.width, _WIDEST) if self._wraps else _WIDEST
        self.coloured = self._wraps and self.console.color_system is not None and not self.console.no_color

    def head(self, text: Text) -> None:
        self._put(Text(), text)

    def paragraphs(self, label: str, lines: Iterable[str | Text | tuple[str | Text, str | Text]]) -> None:
        """Lines under one label: it stands before the first. Nothing where there are none. Of a pair the first stands
        before the second, which wraps beside it."""
        for number, line in enumerate(lines):
            lead, body = line if isinstance(line, tuple) else ("", line)
            before = Text(f"{'':{_INDENT}}{label if number == 0 else '':<{_LABEL}}", "dim")
            self._put(before.append_text(_text(lead)), _text(body))

    def gap(self) -> None:
        """An empty line, where people look."""
        if self._wraps:
            self.console.print()

    def bar(self, value: float, threshold: float) -> Text:
        """``value`` of 1, with a mark at ``threshold``."""
        filled = round(max(0.0, min(1.0, value)) * _BAR)
        mark = min(_BAR - 1, round(max(0.0, min(1.0, threshold)) * _BAR))
        cells = ["█" if cell < filled else "·" for cell in range(_BAR)]
        cells[mark] = "┃" if mark >= filled else "╂"
        style = "red" if value >= threshold else "green"
        return Text.assemble(("".join(cells[:mark]), style), (cells[mark], "bold"), ("".join(cells[mark + 1 :]), style))

    def _put(self, before: Text, body: Text) -> None:
        indent = before.cell_len
        lines = body.wrap(self.console, max(_NARROWEST, self.width - indent)) if self._wraps else [body]
        for number, line in enumerate(lines):
            line.rstrip()
            self.console.print(Text.assemble(before if number == 0 else " " * indent, line), soft_wrap=True)


def _text(words: str | Text) -> Text:
    return Text(printable(words)) if isinstance(words, str) else words
