"""The rows that a dump of SQLite inserts into one table. Read, and not run: a dump is a stranger's program. Pure."""

import re
from collections.abc import Iterator

MAX_ROWS = 10_000

_VALUE = re.compile(r"\s*(?:'([^']*(?:''[^']*)*)'|([^\s',()]{1,100}))\s*([,)])")  # a text, or anything that is none


def rows_of(text: str, table: str) -> Iterator[dict[str, str]]:
    """Each row by column. Ends without an error where the text is no such statement any more."""
    head = re.compile(rf'INSERT (?:OR \w+ )?INTO "?{table}"? \(([^)]{{1,2000}})\) VALUES\s*', re.IGNORECASE)
    count = 0
    for found in head.finditer(text):
        columns = [name.strip().strip('"`') for name in found[1].split(",")]
        at = found.end()
        while count < MAX_ROWS and text[at : at + 1] == "(":
            values, at = _row(text, at + 1)
            if len(values) != len(columns):
                break
            count += 1
            yield dict(zip(columns, values, strict=True))
            at = re.compile(r"\s*,?\s*").match(text, at).end()  # type: ignore[union-attr]


def _row(text: str, at: int) -> tuple[list[str], int]:
    """The values up to the closing bracket, and where the text goes on."""
    values: list[str] = []
    while (found := _VALUE.match(text, at)) is not None:
        values.append(found[2] if found[1] is None else found[1].replace("''", "'"))
        at = found.end()
        if found[3] == ")":
            break
    return values, at
