"""How a command ends badly: one line on stderr, and a code that a script can read."""

import sys
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from pydantic import ValidationError

BAD_NEWS = 1
WRONG_INPUT = 2


def printable(text: str) -> str:
    """``text`` as a terminal may have it: foreign text holds characters that it would obey, or that have no bytes."""
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)


def fail(message: str, code: int = WRONG_INPUT) -> NoReturn:
    """Ends the command with ``message`` on stderr (one line per mistake) and ``code``."""
    for line in message.splitlines():
        print(f"pinchpoint: {printable(line)}", file=sys.stderr)
    raise typer.Exit(code)


def fail_over(url: str, error: "ValidationError") -> NoReturn:
    """Ends the command with what is wrong about a URL that was given as an argument, or about an option with it."""
    from pinchpoint.logs import redact

    mistakes = error.errors(include_url=False, include_input=False)
    first = next((mistake for mistake in mistakes if mistake["loc"] == ("url",)), mistakes[0])
    option = "".join(f"{part}: " for part in first["loc"] if part != "url")
    fail(f"{redact(url)}: {option}{first['msg'].removeprefix('Value error, ')}")
