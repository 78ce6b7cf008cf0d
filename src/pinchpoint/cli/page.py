"""A page on a terminal: labelled paragraphs that keep their indent, and bars.

Colour only where a terminal shows it and ``NO_COLOR`` is not set. Where no terminal watches lines are not wrapped, so
that a search in them finds what it looks for.
"""

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

_INDENT = 2
_LABEL = 11  # cells, the space after it included
_BAR = 16
_WIDEST = 110  # cells: longer lines are hard to read


class Page:
    """Writes to standard output."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        self._wraps = self.console.is_terminal
        self.width = min(self.console.width, _WIDEST) if self._wraps else _WIDEST
        self.coloured = self._wraps and self.console.color_system is not None and not self.console.no_color

    def head(self, text: Text) -> None:
        self._put(text, "", 0)

    def paragraphs(self, label: str, lines: Iterable[Text | str]) -> None:
        """Lines under one label: it stands before the first. Nothing where there are none."""
        for number, line in enumerate(lines):
            self._labelled(label if number == 0 else "", Text(line) if isinstance(line, str) else line)

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

    def _labelled(self, label: str, text: Text) -> None:
        self._put(text, f"{'':{_INDENT}}{label:<{_LABEL}}", _INDENT + _LABEL)

    def _put(self, text: Text, before: str, indent: int) -> None:
        lines = text.wrap(self.console, max(20, self.width - indent)) if self._wraps else [text]
        for number, line in enumerate(lines):
            head = before if number == 0 else " " * indent
            line.rstrip()
            self.console.print(Text.assemble((head, "dim"), line), soft_wrap=True)
