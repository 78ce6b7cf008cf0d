"""Prometheus text in, samples by name out: text 0.0.4, text 1.0.0 and OpenMetrics 1.0 by one tolerant line parser.

Sources: prometheus.io/docs/instrumenting/exposition_formats and the OpenMetrics 1.0 specification. A line that makes no
sense is skipped and counted, because real engines mix dialects in one body; a body that makes no sense is refused.
Timestamps and exemplars are read over. Is not a validator, and knows no engine.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern

from pinchpoint.snapshot import Reason
from pinchpoint.sources.engine.recall import MAX_VALUE_CHARS, Recall, Sample
from pinchpoint.sources.http.failure import SourceError

__all__ = ["MAX_LABELS", "MAX_SAMPLES", "Families", "Sample", "parse"]

MAX_SAMPLES = 100_000  # sixteen data-parallel ranks of vLLM 0.33 expose about 9,000
MAX_LINES = 4 * MAX_SAMPLES  # HELP and TYPE included: 16 MiB of empty lines would take half a gigabyte
MAX_LABELS = 128  # vLLM's cache_config_info has 37
MAX_LINE_CHARS = 16_384
KEPT_LABELS = 4096  # sets of them, of dozens of engines; each costs about 600 bytes
MAX_KEPT_CHARS = 400

_NAME = re.compile(r"[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)?[ \t]*")
_LABEL = re.compile(
    r'[ \t]*(?:(?P<key>[a-zA-Z_][a-zA-Z0-9_:]*|"(?:[^"\\]|\\.)*")[ \t]*=[ \t]*)?'
    r'"(?P<value>[^"\\]*(?:\\.[^"\\]*)*)"[ \t]*(?:,|(?=\}))'
)
_CLOSE = re.compile(r"[ \t]*\}")
_ESCAPE = re.compile(r'\\([\\n"])')
_DECLARATION = re.compile(r"#[ \t]+(?:TYPE|HELP|UNIT)[ \t]+\"?([a-zA-Z_:][a-zA-Z0-9_:]*)")
_HALF_LINE = re.compile(r"#.*|[a-zA-Z0-9]*[_:][a-zA-Z0-9_:]*(?:[ \t]*\{.*)?(?:[ \t]+[-+0-9.eE]*)?")


@dataclass(frozen=True, slots=True)
class Families:
    """What an exposition holds. NaN, infinities and ``*_created`` lines are not in it.

    ``samples`` is by sample name, suffixes included. ``declared`` are the names of TYPE, HELP and UNIT lines: a name
    that is declared and has no sample is a metric that the engine has not set yet.
    """

    samples: Mapping[str, tuple[Sample, ...]]
    declared: frozenset[str] = field(default_factory=frozenset)
    malformed_lines: int = 0

    @property
    def names(self) -> frozenset[str]:
        return self.declared | self.samples.keys()


def parse(body: bytes, content_type: str | None = None, recall: Recall | None = None) -> Families:
    """Read one exposition.

    ``content_type`` matters for OpenMetrics only, which must end with ``# EOF``. ``recall`` is what is remembered of
    the same target's last one, and is kept for the next. Raises ``SourceError`` (``NOT_EXPOSITION``, ``TRUNCATED`` or
    ``TOO_LARGE``) and nothing else, whatever the bytes are.
    """
    if body.count(b"\n") > MAX_LINES:
        raise SourceError(Reason.TOO_LARGE, f"more than {MAX_LINES} lines; check port and metrics_path")
    lines = body.decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    known = recall.read(lines) if recall is not None and lines[-1] in ("", "# EOF") else None
    if known is not None:
        samples, declared, ended = known
        if not _is_openmetrics(content_type) or ended:
            return Families(samples, declared)
    return _parsed(lines, body, content_type, recall)


def _parsed(lines: list[str], body: bytes, content_type: str | None, recall: Recall | None) -> Families:
    if recall is not None:
        recall.forget()
    half = lines[-1]
    samples: dict[str, list[Sample]] = {}
    declared: set[str] = set()
    read: list[tuple[str, Mapping[str, str]]] = []
    good = bad = 0
    plain = True
    ended = half.rstrip() == "# EOF"
    for raw in lines[:-1]:
        line = raw.strip(" \t\r")
        plain &= len(line) == len(raw)
        if line == "# EOF":
            ended, half = True, ""
            break
        if not line:
            continue
        if line[0] == "#":
            declaration = _DECLARATION.match(line)
            if declaration:
                declared.add(declaration[1])
            good += declaration is not None
            continue
        found = _read_sample(line)
        if found is None:
            bad += 1
            continue
        good += 1
        name, sample, is_plain = found
        plain &= is_plain
        read.append((name, sample.labels))
        if len(read) > MAX_SAMPLES:
            raise SourceError(Reason.TOO_LARGE, f"more than {MAX_SAMPLES} samples; check port and metrics_path")
        if math.isfinite(sample.value) and not name.endswith("_created"):
            samples.setdefault(name, []).append(sample)
    _refuse_nonsense(body, content_type, good=good, bad=bad, half="" if ended else half, ended=ended)
    told = frozenset(declared)
    if recall is not None and plain and not bad and lines[-1] in ("", "# EOF"):
        recall.keep(lines, read, told, ended)
    return Families({name: tuple(found) for name, found in samples.items()}, told, bad)


def _is_openmetrics(content_type: str | None) -> bool:
    return content_type is not None and content_type.startswith("application/openmetrics-text")


def _refuse_nonsense(body: bytes, content_type: str | None, *, good: int, bad: int, half: str, ended: bool) -> None:
    """Raise when the body as a whole is no exposition, or is not all of one."""
    hopeless = bad > good or (good == 0 and half.strip() != "")
    if hopeless and not (bad == 0 and _HALF_LINE.fullmatch(half)):
        raise SourceError(
            Reason.NOT_EXPOSITION,
            f"the answer is {_resemblance(body)}, not Prometheus text; check port and metrics_path",
        )
    if half.strip():
        raise SourceError(Reason.TRUNCATED, f"the body ends in the middle of a line after {len(body)} bytes")
    if _is_openmetrics(content_type) and not ended:
        raise SourceError(Reason.TRUNCATED, f"the OpenMetrics body has no # EOF after {len(body)} bytes")


def _resemblance(body: bytes) -> str:
    start = body[:512].lstrip()
    if start.startswith(b"<"):
        return "HTML"
    if start.startswith((b"{", b"[")):
        return "JSON"
    return "binary" if b"\0" in start else "some other text"


def _read_sample(line: str) -> tuple[str, Sample, bool] | None:
    """One sample line, and whether all before its last blank is its series; ``None`` where it is malformed."""
    series = _series(line) if len(line) <= MAX_LINE_CHARS else None
    if series is None:
        return None
    name, labels, end = series
    number = _number(line[end:])
    if not name or number is None:
        return None
    head = line.rpartition(" ")[0]
    plain = head == line[:end].rstrip(" ") and len(head) < MAX_LINE_CHARS - MAX_VALUE_CHARS
    return name, Sample(labels, number), plain


def _series(line: str) -> tuple[str, Mapping[str, str], int] | None:
    """Name and labels at the start of a line, and where they end. A quoted metric name stands inside the braces."""
    start = _NAME.match(line)
    assert start is not None  # every part of the pattern is optional
    name, position = start[1] or "", start.end()
    if line[position : position + 1] != "{":
        return name, _NO_LABELS, position
    close = line.find("} ", position)
    found = _kept_labels(line[position : close + 1]) if 0 < close - position < MAX_KEPT_CHARS else None
    if found is None:  # too long to be kept, a label that holds "} ", or malformed
        found = _labels(line[position:])
    return None if found is None else (name or found[0], found[1], position + found[2])


def _labels(text: str) -> tuple[str, Mapping[str, str], int] | None:
    """A quoted name (or none) and the labels in the braces that a text starts with, and where they end."""
    name, position = "", 1
    labels: dict[str, str] = {}
    while label := _LABEL.match(text, position):
        key, value = label["key"], label["value"]
        if "\\" in value:
            value = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], value)
        if key is None:
            name = name or value
        else:
            labels[intern(key.strip('"'))] = intern(value)  # of many engines and scrapes the same few
        position = label.end()
    close = _CLOSE.match(text, position)
    return None if close is None or len(labels) > MAX_LABELS else (name, labels, close.end())


# Many series of an engine have the same labels, in every scrape, and reading them takes most of the time.
_kept_labels = lru_cache(KEPT_LABELS)(_labels)
_NO_LABELS: Mapping[str, str] = {}


def _number(text: str) -> float | None:
    """The value of ``VALUE [TIMESTAMP] [# EXEMPLAR]``."""
    fields = text.split("#", 1)[0].split()
    # Python also reads 1_000 and other alphabets' digits as numbers; Prometheus does not.
    if not 1 <= len(fields) <= 2 or "_" in fields[0] or not fields[0].isascii():
        return None
    try:
        return float(fields[0])
    except ValueError:
        return None
