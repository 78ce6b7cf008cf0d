"""One log pipeline on standard error: ours (structlog) and the libraries' (aiohttp, apscheduler, asyncio) alike.

Every line is one event with UTC time, level and logger. Values are redacted, cut and freed of control characters before
they are rendered, so neither a secret nor a forged line gets out. Is not: a place that decides what is worth a line.
Writes to the stream directly; a stream that blocks (a stalled pipe) blocks the writer.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from typing import Literal, TextIO

import structlog
from pydantic import BaseModel, ConfigDict, Field
from structlog.typing import EventDict, Processor, WrappedLogger

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["auto", "console", "logfmt", "json"]

HIDDEN = "***"
MAX_TEXT = 2_000  # characters of one value: an engine's HTML error page must not fill the disk
MAX_DEPTH, MAX_ITEMS = 6, 100  # of a nested value
MIN_SECRET, MAX_SECRETS = 6, 4_000  # characters: a shorter one would blot out ordinary words; known by value
LAST_FRAMES = 3  # the innermost ones say where it went wrong

_SECRET_KEY = re.compile(
    r"(?:^|[_.-])(?:authorization|api_?-?key|token|passw(?:or)?d|secret|(?:set-)?cookie)$", re.IGNORECASE
)
_SECRET_TEXT = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"(?<=://)[^/\s]+(?=@)", HIDDEN),  # user info of a URL
        (r"\b(bearer\s+)[\w.~+/=-]{4,}", rf"\1{HIDDEN}"),
        (r"\b(?:sk-[\w-]{8,}|(?:hf|gsk|xai|ghp)[-_]\w{20,})", HIDDEN),  # keys that show their vendor
        (
            r"((?:authorization|api[_-]?key|passw(?:or)?d)[\"']?\s*[:=]\s*[\"']?(?:basic\s+)?)[^\s&\"',;]+",
            rf"\1{HIDDEN}",
        ),
        (r"((?<![a-z])(?:token|secret)(?:=|[\"']\s*:\s*[\"']))[^\s&\"',;]+", rf"\1{HIDDEN}"),
    )
)
_hidden: set[str] = set()
_BREAKS_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")  # and what reorders a line
_NEEDS_QUOTES = re.compile(r"[^\w!#-<>-\[\]-~]|^$")
_NOT_IN_KEY = re.compile(r"[^\w.-]")


class LogSettings(BaseModel):
    """What is logged, and in which form."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    level: Level = Field(
        default="info", description="Least level that is written. info: each change of state, but not each run."
    )
    format: Format = Field(
        default="auto", description="auto: console with colour on a terminal, logfmt (Prometheus's own form) otherwise."
    )


def configure(level: Level = "info", format: Format = "auto", stream: TextIO | None = None) -> None:  # noqa: A002
    """Sends every record of the process to ``stream`` (standard error) in one form. The last call holds.

    ``auto`` is the console form when ``stream`` is a terminal, logfmt otherwise.
    """
    stream = stream or sys.stderr
    structlog.configure(
        processors=_PIPELINE,
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=_CONTEXT, processors=_rendering(format, stream.isatty()))
    )
    logging.root.handlers = [handler]
    logging.captureWarnings(True)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # a line per scrape says nothing
    # scheduler.py counts skipped and failed runs and logs each change once; these would say it again at every run
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    set_level(level)


def set_level(level: Level) -> None:
    """Changes the least level that is written, at once and for every logger that has no level of its own."""
    logging.root.setLevel(level.upper())


def hide(secrets: Iterable[str]) -> None:
    """From now on these very values are in no line, besides what looks like a secret by itself.

    Those of before stay hidden: a request with them may be under way.
    """
    new = {secret for secret in secrets if len(secret) >= MIN_SECRET}
    known = new | _hidden if len(new | _hidden) <= MAX_SECRETS else new
    _hidden.clear()
    _hidden.update(known)


def redact(value: object, depth: int = 0) -> object:
    """``value`` without secrets: known ones, values under a secret's name, bearer tokens, API keys, user info in URLs.

    Numbers stay as they are, mappings and sequences are walked (to a limit), anything else becomes its text.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        items = list(value.items())[:MAX_ITEMS]
        return {str(redact(k, depth + 1)): _redact_named(str(k), v, depth + 1) for k, v in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, depth + 1) for item in list(value)[:MAX_ITEMS]]
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    cut = text[: 2 * MAX_TEXT]  # first, so that a huge text costs no more than a long one
    for known in sorted(_hidden.copy(), key=len, reverse=True):  # one may hold another
        cut = cut.replace(known, HIDDEN)
    for secret, replacement in _SECRET_TEXT:
        cut = secret.sub(replacement, cut)
    return cut if len(cut) <= MAX_TEXT else cut[:MAX_TEXT] + "…"


def _redact_named(key: str, value: object, depth: int) -> object:
    harmless = value is None or isinstance(value, bool | int | float)  # a count of tokens is no token
    return HIDDEN if _SECRET_KEY.search(key) and not harmless else redact(value, depth)


# What every record gets, wherever it comes from. The time is taken when it is made, not when it is written.
_CONTEXT: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="ts"),
]
_PIPELINE: list[Processor] = [
    structlog.stdlib.filter_by_level,
    *_CONTEXT,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
]


def _rendering(format: Format, terminal: bool) -> list[Processor]:  # noqa: A002
    common = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, _short_exception, _redact_all]
    rename = structlog.processors.EventRenamer("msg")
    if format == "json":
        return [*common, rename, structlog.processors.JSONRenderer()]
    if format == "logfmt" or (format == "auto" and not terminal):
        return [*common, rename, _logfmt]
    console = structlog.dev.ConsoleRenderer(colors=terminal, timestamp_key="ts")
    return [common[0], _traceback_when_debugging, *common[1:], _escape_all, console]


def _raised(event: EventDict) -> BaseException | None:
    given = event.get("exc_info")
    error = given[1] if isinstance(given, tuple) else given
    return sys.exc_info()[1] if error is True else error or None


def _short_exception(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """An exception as type, text and the innermost frames, so that the event stays one line."""
    error = _raised(event)
    event.pop("exc_info", None)
    if error is not None:
        event.update(exception_type=type(error).__name__, exception_text=str(error))
        frames = traceback.extract_tb(error.__traceback__)[-LAST_FRAMES:]
        if frames:
            where = (f"{f.filename.rpartition('/')[2]}:{f.lineno} {f.name}" for f in reversed(frames))
            event["exception_at"] = " < ".join(where)
    return event


def _traceback_when_debugging(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    error = _raised(event)
    if error is not None and logging.root.level <= logging.DEBUG:
        event["exception"] = "".join(traceback.format_exception(error)).splitlines()
    return event


def _redact_all(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    return {_NOT_IN_KEY.sub("_", key) or "_": _redact_named(key, value, 0) for key, value in event.items()}


def _escape(text: str) -> str:
    short = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return _BREAKS_LINE.sub(lambda found: short.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def _escape_all(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """No value reaches the terminal with a control character; a traceback, which only we write, keeps its lines."""
    for key, value in event.items():
        if key == "exception":
            event[key] = "\n".join(map(_escape, value))
        elif isinstance(value, str | list | dict):
            event[key] = _escape(str(value))
    return event


def _logfmt(_: WrappedLogger, __: str, event: EventDict) -> str:
    """``key=value`` pairs, quoted as Go's logfmt quotes, so that what reads Prometheus's logs reads these."""
    first = [key for key in ("ts", "level", "logger", "msg") if key in event]
    return " ".join(f"{key}={_logfmt_value(event[key])}" for key in dict.fromkeys((*first, *event)))


def _logfmt_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _escape(json.dumps(text, ensure_ascii=False)) if _NEEDS_QUOTES.search(text) else text
