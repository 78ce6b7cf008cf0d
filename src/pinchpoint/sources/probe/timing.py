"""Stamps in, seconds out: TTFT, TTFC, TPOT, phases, and what spoils them. Pure.

- TTFT: open connection, nothing sent yet → first text of any kind (content, reasoning, tool call, refusal).
- TTFC: the same → first visible content.
- TPOT: (last text - first text) / (tokens - tokens of the first chunk), the mean of this request. The first chunk's
  tokens were not waited for within the interval, so they don't count; nor do tokens of reasoning that was hidden or
  only summed up, and then the interval begins with the first text after it.

TTFT and TPOT so defined are those of NVIDIA's AIPerf (whose word for this TPOT is inter-token latency).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

MIN_GAPS = 8  # fewer make no mean
MIN_TEXT_CHUNKS = 3  # text in one or two chunks has no pace
BUFFERED_MIN_GAPS = 16  # so many tokens are no accident of one read
BUFFERED_TPOT_SECONDS = 0.0002  # nobody decodes 5,000 tokens/s for one request: such text has waited somewhere
LAG_FLOOR_SECONDS = 0.01  # a loop that is this late at most is on time
LAG_SHARE = 0.1  # of the measured interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What one answer's stamps say. ``None`` where undefined."""

    ttft_seconds: float | None = None
    ttfc_seconds: float | None = None
    tpot_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    completion_tokens: int | None = None
    token_source: str | None = None  # usage or chunks
    buffered: bool = False
    polluted: bool = False  # our own event loop was too late to believe the latencies, which are None then


def timing(stamps: Stamps, transcript: Transcript, loop_lag_seconds: float = 0.0) -> Timing:
    """Judge the stamps of one attempt. ``loop_lag_seconds`` is the largest lag of our event loop meanwhile."""
    start, first = stamps.ready_ns, transcript.first_text_ns
    reported = transcript.usage.completion_tokens if transcript.usage is not None else None
    tokens = reported if reported is not None else (transcript.text_events or None)
    source = None if tokens is None else "chunks" if reported is None else "usage"
    phases = _phases(stamps, transcript)
    if start is None or first is None:
        return Timing(phases=phases, completion_tokens=tokens, token_source=source)
    ttft, span = _seconds(start, first), _between(transcript.pace_ns, transcript.last_text_ns) or 0.0
    gaps = _visible_tokens(transcript, tokens or 0) - transcript.first_chunk_tokens
    ttft_late, tpot_late = _late(loop_lag_seconds, ttft), _late(loop_lag_seconds, span)
    buffered = (
        gaps >= BUFFERED_MIN_GAPS
        and transcript.text_events >= MIN_TEXT_CHUNKS
        and span < gaps * BUFFERED_TPOT_SECONDS
        and loop_lag_seconds <= LAG_FLOOR_SECONDS
    )
    content = transcript.first_content_ns
    paced = gaps >= MIN_GAPS and transcript.text_events >= MIN_TEXT_CHUNKS and transcript.text_reads > 1
    return Timing(
        ttft_seconds=None if ttft_late or buffered else ttft,
        ttfc_seconds=None if ttft_late or buffered or content is None else _seconds(start, content),
        tpot_seconds=span / gaps if paced and not (tpot_late or buffered) else None,
        phases=phases,
        completion_tokens=tokens,
        token_source=source,
        buffered=buffered,
        polluted=ttft_late or (paced and tpot_late),
    )


def _visible_tokens(transcript: Transcript, tokens: int) -> int:
    """The tokens whose own text was streamed; 0 where that can't be told.

    Reasoning that is hidden or summed up is billed, but was over before the first text that has a pace.
    """
    usage = transcript.usage
    if usage is None or usage.completion_tokens is None or transcript.reasoning in (None, "streamed"):
        return tokens
    return 0 if usage.reasoning_tokens is None else tokens - usage.reasoning_tokens


def _late(lag: float, interval: float) -> bool:
    return lag > LAG_FLOOR_SECONDS and lag > LAG_SHARE * interval


def _phases(stamps: Stamps, transcript: Transcript) -> dict[str, float]:
    """Seconds of each phase that was reached. They follow one another, but first_content lies within generation."""
    resolve = _between(stamps.resolve_started_ns, stamps.resolved_ns)
    connect = _between(stamps.connect_started_ns, stamps.ready_ns)
    marks = {
        "resolve": resolve,
        "connect": None if connect is None else max(0.0, connect - (resolve or 0.0)),
        "send": _between(stamps.ready_ns, stamps.sent_ns),
        "headers": _between(stamps.sent_ns, stamps.headers_ns),
        "first_token": _between(stamps.headers_ns, transcript.first_text_ns),
        "first_content": _between(transcript.first_text_ns, transcript.first_content_ns),
        "generation": _between(transcript.pace_ns, transcript.last_text_ns),
    }
    return {phase: seconds for phase, seconds in marks.items() if seconds is not None}


def _between(begin_ns: int | None, end_ns: int | None) -> float | None:
    return None if begin_ns is None or end_ns is None else _seconds(begin_ns, end_ns)


def _seconds(begin_ns: int, end_ns: int) -> float:
    return max(0, end_ns - begin_ns) / 1e9
