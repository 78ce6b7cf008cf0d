"""The ledger as text: one JSON document with a checksum over it. Pure.

Every number is checked when it is read: a ledger that says something impossible is no ledger.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pinchpoint.sources.probe.spend.amount import Spent
from pinchpoint.sources.probe.spend.book import MAX_ACCOUNTS, MAX_DAYS, MAX_MONTHS, Account, Book

VERSION = 1
MAX_NUMBER = 2**62  # of tokens and nano-dollars: what it takes four thousand million dollars to reach

_DAY = re.compile(r"\d{4}-[01]\d-[0-3]\d", re.ASCII)
_MONTH = re.compile(r"\d{4}-[01]\d", re.ASCII)


class CorruptError(ValueError):
    """The text is no ledger, or not what was written."""


class NewerError(ValueError):
    """A newer pinchpoint wrote it."""


def to_text(book: Book) -> str:
    content = {**asdict(book), "version": VERSION}
    return json.dumps({"sha256": _checksum(content), "ledger": content}, indent=1) + "\n"


def from_text(text: str) -> Book:
    """The book that ``to_text`` wrote. Raises ``CorruptError``, or ``NewerError`` for one of a later version."""
    try:
        document = json.loads(text)
        content, checksum = document["ledger"], document["sha256"]
        intact = checksum == _checksum(content)
        version = content["version"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CorruptError(f"it is no ledger ({type(error).__name__})") from None
    if not intact:
        raise CorruptError("its checksum does not match")
    if isinstance(version, int) and version > VERSION:
        raise NewerError(f"a newer pinchpoint wrote it (version {version})")
    try:
        return _book(content)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CorruptError(f"it says something impossible ({error})") from None


def _checksum(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _book(content: Mapping[str, Any]) -> Book:
    accounts = content["accounts"]
    if len(accounts) > MAX_ACCOUNTS:
        raise ValueError("too many accounts")
    lost_on = content["lost_on"]
    if lost_on is not None and not _DAY.fullmatch(lost_on):
        raise ValueError("lost_on")
    return Book(
        id=str(content["id"]), lost_on=lost_on, accounts={name: _account(given) for name, given in accounts.items()}
    )


def _account(given: Mapping[str, Any]) -> Account:
    asked = given["asked_unix"]
    return Account(
        days=_periods(given["days"], _DAY, MAX_DAYS),
        months=_periods(given["months"], _MONTH, MAX_MONTHS),
        asked_unix=None if asked is None else float(_number(asked, int | float)),
        most_tokens=_number(given["most_tokens"]),
    )


def _periods(given: Mapping[str, Any], label: re.Pattern[str], most: int) -> dict[str, Spent]:
    if len(given) > most or not all(label.fullmatch(name) for name in given):
        raise ValueError("periods")
    return {
        name: Spent(
            tokens=_number(spent["tokens"]),
            nano_usd=_number(spent["nano_usd"]),
            unpriced_tokens=_number(spent["unpriced_tokens"]),
        )
        for name, spent in given.items()
    }


def _number(value: Any, kind: Any = int) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value <= MAX_NUMBER:
        raise ValueError("a number is out of range")
    return value
