"""How a command ends badly: one line on stderr, and a code that a script can read."""

import sys
from typing import NoReturn

import typer

BAD_NEWS = 1
WRONG_INPUT = 2


def fail(message: str, code: int = WRONG_INPUT) -> NoReturn:
    """Ends the command with ``message`` on stderr (one line per mistake) and ``code``."""
    for line in message.splitlines():
        print(f"pinchpoint: {line}", file=sys.stderr)
    raise typer.Exit(code)
