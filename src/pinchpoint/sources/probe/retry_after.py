"""How long a server asks to be left alone, in whatever form it says so. Pure.

The forms: ``Retry-After`` in seconds or as a date (RFC 9110), ``retry-after-ms`` (Azure, OpenAI), Google's
``RetryInfo`` with ``"retryDelay": "26s"``, a JSON field ``retry_after``, and words: "Please try again in 6m0.36s"
(OpenAI, Groq), "Try again in 2 seconds" (Azure), "Please retry in 26.4s" (Google), "请在 30 秒后重试".
"""

import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from pinchpoint.sources.probe.error_body import ErrorFacts

MAX_SECONDS = 3600.0  # Azure has asked for a day; an hour is how long nobody should wait to learn that it works again

_NUMBER = r"\d{1,9}(?:\.\d{1,12})?"
_SECONDS = {  # by how the unit begins; the longer beginning first
    "ms": 0.001,
    "milli": 0.001,
    "毫秒": 0.001,
    "s": 1.0,
    "秒": 1.0,
    "m": 60.0,
    "分": 60.0,
    "h": 3600.0,
    "小时": 3600.0,
    "d": 86_400.0,
    "天": 86_400.0,
}
_UNIT = r"(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])|毫秒|秒|分|小时|天"
_PART = re.compile(rf"({_NUMBER})\s*({_UNIT})")
_SPAN = rf"((?:{_NUMBER}\s*(?:{_UNIT})\s*){{1,4}})"
_FIELD = re.compile(rf'"retry[_-]?(?:after|delay)(_ms)?(?:_seconds|_secs)?"\s*:\s*"?({_NUMBER})\s*(ms)?s?"?\s*[,}}]')
_WORDS = re.compile(rf"(?:try again|retry|wait|available|resets?)\s+(?:again\s+)?(?:in|after|for|about)?\s*{_SPAN}")
_WORDS_CHINESE = re.compile(rf"({_NUMBER}\s*(?:毫秒|秒|分|小时)钟?)\s*(?:之?后)")


def retry_after_seconds(headers: Mapping[str, str], facts: ErrorFacts, received_at: float) -> float | None:
    """Seconds to wait, from 0 to an hour; ``None`` when the server names no time that can be understood.

    ``headers``: lower-case names. ``received_at``: Unix time of the answer, used for a date where the server does not
    say what its own clock shows. A header is the server's own word and beats what a message may only quote.
    """
    found = (
        _scaled(headers.get("retry-after-ms", ""), 0.001),
        _scaled(headers.get("retry-after", ""), 1.0),
        _until(headers.get("retry-after", ""), headers.get("date", ""), received_at),
        _in_field(facts.text),
        _in_words(facts.text),
    )
    seconds = next((value for value in found if value is not None), None)
    return None if seconds is None else min(max(0.0, seconds), MAX_SECONDS)


def _scaled(text: str, unit: float) -> float | None:
    if not re.fullmatch(r"\d+(?:\.\d+)?", text.strip(), re.ASCII):  # however long: too many seconds are an hour
        return None
    return float(text) * unit


def _until(text: str, date: str, received_at: float) -> float | None:
    then, now = _moment(text), _moment(date)
    return None if then is None else then - (received_at if now is None else now)


def _moment(text: str) -> float | None:
    """The Unix time of an HTTP date."""
    if not 10 < len(text) < 60:
        return None
    try:
        moment = parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return moment if math.isfinite(moment) else None


def _in_field(text: str) -> float | None:
    match = _FIELD.search(text)
    if match is None:
        return None
    return float(match[2]) * (0.001 if match[1] == "_ms" or match[3] == "ms" else 1.0)


def _in_words(text: str) -> float | None:
    match = _WORDS.search(text) or _WORDS_CHINESE.search(text)
    return None if match is None else sum(float(number) * _unit(unit) for number, unit in _PART.findall(match[1]))


def _unit(unit: str) -> float:
    return next(seconds for beginning, seconds in _SECONDS.items() if unit.startswith(beginning))
