"""Stamps in, seconds out: TTFT, TTFC, TPOT, phases, and what spoils them. Pure.

- TTFT: the request is about to be written to an open connection → first text of any kind (content, reasoning, tool
  call, refusal).
- TTFC: the same → first visible content.
- TPOT: (last text - first text) / (tokens - tokens of the first chunk), the mean of this request. The first chunk's
  tokens were not waited for within the interval, so they don't count (nor do its whole lump's, where a proxy makes
  lumps); nor do tokens of reasoning that was hidden or only summed up, and then the interval begins with the first text
  after it.

TTFT and TPOT so defined are those of NVIDIA's AIPerf (whose word for this TPOT is inter-token latency).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise

from pinchpoint.sources.probe.lateness import Lateness, on_time
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

MIN_GAPS = 8  # fewer make no mean
MAX_GAPS = 1000  # that a reading holds: the first ones
MIN_TEXT_CHUNKS = 3  # text in one or two chunks has no pace
BUFFERED_MIN_CHUNKS = 16  # so much text is no accident of one read
BUFFERED_TPOT_SECONDS = 0.0002  # nobody decodes 5,000 tokens/s for one request: such text has waited somewhere
FAST_TPOT_SECONDS = 0.001  # few decode faster: a loop that was away for less can't have made one read of many tokens
LUMP_CHUNKS = 4  # to a read, on average: engines send each chunk as they have it, and networks join two or three
LUMP_SECONDS = 0.025  # between reads: less is how a fast engine's chunks travel, and no harm
LAG_FLOOR_SECONDS = 0.01  # a loop that is this late at most is on time
LAG_SHARE = 0.1  # of the measured interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one answer's stamps say. ``None`` where undefined.

    ``discarded`` names the latencies that were measured and are ``None`` because our own event loop was late.
    """

    ttft_seconds: float | None = None
    ttfc_seconds: float | None = None
    tpot_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    completion_tokens: int | None = None
    token_source: str | None = None  # usage or chunks
    tokens_per_chunk: float | None = None
    gaps_seconds: tuple[float, ...] = ()  # between the reads that brought text
    at_once: bool = False  # all the text came at one time: there was no stream
    lumps: bool = False  # it came in few large pieces, with a wait before each
    coalesced: bool = False  # too few chunks for a pace, though enough tokens
    discarded: tuple[str, ...] = ()


def timing(stamps: Stamps, transcript: Transcript, lateness: Lateness = on_time) -> Timing:
    """Judge the stamps of one attempt. ``lateness`` says how late our event loop was at a stamp."""
    start = stamps.ready_ns if stamps.sent_ns is None else stamps.sent_ns
    first, pace, last = transcript.first_text_ns, transcript.pace_ns, transcript.last_text_ns
    reported = transcript.usage.completion_tokens if transcript.usage is not None else None
    tokens = reported if reported is not None else (transcript.text_events or None)
    source = None if tokens is None else "chunks" if reported is None else "usage"
    phases = _phases(stamps, transcript)
    if start is None or first is None:
        return Timing(phases=phases, completion_tokens=tokens, token_source=source)
    visible = _visible_tokens(transcript, tokens or 0)
    lag = 0.0 if pace is None or last is None else lateness(pace, last)
    at_once, lumps = _at_once(transcript, visible, lag), _lumps(transcript, lag)
    gaps = visible - (transcript.first_read_tokens if lumps else transcript.first_chunk_tokens)
    spans = {} if at_once else _spans(start, transcript, gaps)
    late = tuple(name for name, span in spans.items() if _is_spoiled(*span, start, lateness))
    seconds = {name: _seconds(*span) for name, span in spans.items() if name not in late}
    tpot = seconds.get("tpot")
    return Timing(
        ttft_seconds=seconds.get("ttft"),
        ttfc_seconds=seconds.get("ttfc"),
        tpot_seconds=None if tpot is None else tpot / gaps,
        phases=phases,
        completion_tokens=tokens,
        token_source=source,
        tokens_per_chunk=visible / transcript.text_events if source == "usage" and transcript.text_events else None,
        gaps_seconds=_gaps(transcript) if lag <= LAG_FLOOR_SECONDS and not at_once else (),
        at_once=at_once,
        lumps=lumps,
        coalesced=visible > MIN_GAPS and 0 < transcript.text_events < MIN_TEXT_CHUNKS,
        discarded=late,
    )


def _spans(start: int, transcript: Transcript, gaps: int) -> dict[str, tuple[int, int]]:
    """The begin and the end of each latency that is defined."""
    ends = {"ttft": transcript.first_text_ns, "ttfc": transcript.first_content_ns}
    spans = {name: (start, end) for name, end in ends.items() if end is not None}
    enough = gaps >= MIN_GAPS and transcript.text_events >= MIN_TEXT_CHUNKS
    if enough and transcript.text_reads > 1 and transcript.pace_ns is not None and transcript.last_text_ns is not None:
        spans["tpot"] = (transcript.pace_ns, transcript.last_text_ns)
    return spans


def _is_spoiled(begin_ns: int, end_ns: int, start_ns: int, lateness: Lateness) -> bool:
    """Whether a stamp of an arrival may be so late that it matters.

    What the loop did between the two does not, for nobody waited; nor what it did at the start, which is our own doing.
    """
    lag = max((lateness(at_ns, at_ns) for at_ns in (begin_ns, end_ns) if at_ns != start_ns), default=0.0)
    return lag > LAG_FLOOR_SECONDS and lag > LAG_SHARE * _seconds(begin_ns, end_ns)


def _at_once(transcript: Transcript, visible: int, lag: float) -> bool:
    """Whether so much text came in so little time that it must have waited, and not for our own loop."""
    if visible <= BUFFERED_MIN_CHUNKS or transcript.text_events < MIN_TEXT_CHUNKS:
        return False
    span = _between(transcript.pace_ns, transcript.last_text_ns) or 0.0
    return span < visible * BUFFERED_TPOT_SECONDS and lag < visible * FAST_TPOT_SECONDS


def _lumps(transcript: Transcript, lag: float) -> bool:
    """Whether a proxy holds text back until its buffer is full: many chunks to a read, and long waits between."""
    chunks, waits = transcript.text_events, transcript.text_reads - 1
    if chunks < BUFFERED_MIN_CHUNKS or waits < 1 or chunks < LUMP_CHUNKS * transcript.text_reads:
        return False
    wait = (_between(transcript.pace_ns, transcript.last_text_ns) or 0.0) / waits
    return wait >= LUMP_SECONDS and lag < wait / 2


def _gaps(transcript: Transcript) -> tuple[float, ...]:
    gaps = (_seconds(one, other) for one, other in pairwise(transcript.text_ns) if other != one)
    return tuple(islice(gaps, MAX_GAPS))


def _visible_tokens(transcript: Transcript, tokens: int) -> int:
    """The tokens whose own text was streamed; 0 where that can't be told.

    Reasoning that is hidden or summed up is billed, but was over before the first text that has a pace.
    """
    usage = transcript.usage
    if usage is None or usage.completion_tokens is None or transcript.reasoning in (None, "streamed"):
        return tokens
    return 0 if usage.reasoning_tokens is None else tokens - usage.reasoning_tokens


def _phases(stamps: Stamps, transcript: Transcript) -> dict[str, float]:
    """Seconds of each phase that was reached. They follow one another, but first_content lies within generation."""
    looked_up = stamps.resolved_ns if stamps.resolved_ns is not None else stamps.connect_started_ns
    opened = stamps.handshake_started_ns if stamps.handshake_started_ns is not None else stamps.ready_ns
    marks = {
        "resolve": _between(stamps.resolve_started_ns, stamps.resolved_ns),
        "connect": None if stamps.connect_started_ns is None else _between(looked_up, opened),
        "tls": _between(stamps.handshake_started_ns, stamps.ready_ns),
        "send": _between(stamps.ready_ns, stamps.sent_ns),
        "headers": _between(stamps.sent_ns, stamps.headers_ns),
        "first_token": _between(stamps.headers_ns, transcript.first_text_ns),
        "first_content": _between(transcript.first_text_ns, transcript.first_content_ns),
        "generation": _between(transcript.pace_ns, transcript.last_text_ns),
    }
    return {phase: seconds for phase, seconds in marks.items() if seconds is not None}


def unfinished(stamps: Stamps, transcript: Transcript, end_ns: int) -> tuple[str, float] | None:
    """The phase in which an attempt ended that did not get to its end, and how long it had lasted by then."""
    began = {
        "generation": transcript.pace_ns,
        "first_token": stamps.headers_ns,
        "headers": stamps.sent_ns,
        "send": stamps.ready_ns,
        "tls": stamps.handshake_started_ns,
        "connect": stamps.connect_started_ns,
        "resolve": stamps.resolve_started_ns,
    }
    return next(((phase, _seconds(at, end_ns)) for phase, at in began.items() if at is not None), None)


def _between(begin_ns: int | None, end_ns: int | None) -> float | None:
    return None if begin_ns is None or end_ns is None else _seconds(begin_ns, end_ns)


def _seconds(begin_ns: int, end_ns: int) -> float:
    return max(0, end_ns - begin_ns) / 1e9
