"""Texts of a command line, a configuration or a log as values; ``None`` for what is none, or says "you choose"."""

from __future__ import annotations

import re
from collections.abc import Callable

MAX_COUNT = 10**12
MAX_TEXT = 256
_HUMAN = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([kKmMgGtT]?)")  # vLLM: k is 1000, K is 1024

Read = Callable[[str], object]


def whole(text: str) -> int | None:
    """A count from 1 up: ``16``, ``446,688``, ``128k``, ``25.6k``, ``1M``."""
    found = _HUMAN.fullmatch(text.strip().replace(",", ""))
    if found is None:
        return None
    number, unit = found.groups()
    step = 1000 if unit.islower() else 1024
    if "." in number and (unit == "" or unit.isupper()):  # vLLM refuses these too
        return None
    value = round(float(number) * step ** (" kmgt".index(unit.lower()) if unit else 0))
    return value if 1 <= value <= MAX_COUNT else None


def ratio(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


def word(text: str) -> str | None:
    """A plain word; ``auto`` and ``None`` leave the choice to the engine, so they tell nothing."""
    text = text.strip().strip("'\"")
    return text if text.isprintable() and 0 < len(text) <= MAX_TEXT and text not in ("auto", "None", "null") else None


def yes_or_no(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.strip().lower())
