"""Writes the generated part of docs/alerts.md anew: ``python -m tests.alerting.docs_table``."""

from pathlib import Path

from pinchpoint.alerting import alerts_table

PAGE = Path("docs/alerts.md")
BEGIN, END = "<!-- generated: python -m tests.alerting.docs_table -->\n", "<!-- end of what is generated -->\n"


def with_table(text: str) -> str:
    """The page with the table of the catalogue between its two marks."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{alerts_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
