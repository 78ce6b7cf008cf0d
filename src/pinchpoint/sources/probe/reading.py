"""From a judged exchange to the reading that the rest of the house sees. Pure."""

from collections.abc import Iterator

from pinchpoint.snapshot import ProbeLiveness, ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.excerpt import excerpt
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.judgement import Judgement
from pinchpoint.sources.probe.remedy import REMEDY
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.timing import Timing

# In these no first token was seen as a user sees one.
_NO_LATENCY = frozenset({ProbeOutcome.NOT_STREAMED, ProbeOutcome.INVALID_RESPONSE})


def blank_reading(
    target: ProbeTargetSettings, at: float, outcome: ProbeOutcome, message: str, secrets: tuple[str, ...] = ()
) -> ProbeReading:
    """The reading of a probe that never reached the wire."""
    return ProbeReading(
        target=target.name,
        placement=target.placement,
        at=at,
        outcome=outcome,
        engine=target.engine,
        detail=excerpt(message, secrets),
        remedy=REMEDY[outcome],
    )


def reading(
    target: ProbeTargetSettings,
    at: float,
    exchange: Exchange,
    judgement: Judgement,
    times: Timing,
    secrets: tuple[str, ...] = (),
) -> ProbeReading:
    """The reading of one exchange.

    A complete answer that came at once is ``not_streamed``; in lumps it is an answer, and its latencies are what a
    client sees. TTFT is kept for a probe that failed after its first token: it was seen. TPOT is kept for a complete
    answer only: of a broken one the number of tokens is not known.
    """
    outcome, message = judgement.outcome, judgement.message
    if outcome is ProbeOutcome.OK and times.at_once:
        outcome, message = ProbeOutcome.NOT_STREAMED, "buffered: all text came at once"
    transcript, stamps, usage = exchange.transcript, exchange.stamps, exchange.transcript.usage
    seen = outcome not in _NO_LATENCY
    end_ns = transcript.end_ns if transcript.ended and transcript.end_ns is not None else exchange.end_ns
    notes = [message, *_notes(exchange, times)]
    return ProbeReading(
        target=target.name,
        placement=target.placement,
        at=at,
        outcome=outcome,
        engine=target.engine,
        detail=excerpt("; ".join(filter(None, notes)), secrets),
        remedy=REMEDY[outcome],
        ttft_seconds=times.ttft_seconds if seen else None,
        ttfc_seconds=times.ttfc_seconds if seen else None,
        tpot_seconds=times.tpot_seconds if outcome is ProbeOutcome.OK else None,
        duration_seconds=max(0, end_ns - stamps.started_ns) / 1e9,
        phases=times.phases,
        prompt_tokens=usage.prompt_tokens if usage is not None else None,
        completion_tokens=times.completion_tokens,
        cached_tokens=usage.cached_tokens if usage is not None else None,
        characters=transcript.characters if transcript.text_events else None,
        token_source=times.token_source,
        tokens_per_chunk=times.tokens_per_chunk if outcome is ProbeOutcome.OK else None,
        chunk_gaps_seconds=times.gaps_seconds if outcome is ProbeOutcome.OK else (),
        buffered=times.at_once or times.lumps,
        coalesced=times.coalesced,
        discarded=times.discarded,
        reasoning=transcript.reasoning,
        connection=None if stamps.ready_ns is None else "reused" if stamps.reused else "new",
        http_status=exchange.status,
    )


def _notes(exchange: Exchange, times: Timing) -> Iterator[str]:
    """What else is to be said of how the answer came."""
    if times.lumps:
        transcript = exchange.transcript
        yield f"buffered: {transcript.text_events} chunks of text came in {transcript.text_reads} lumps"
    if exchange.content_encoding not in ("", "identity"):
        yield f"compressed ({exchange.content_encoding[:20]}) though identity was asked, so text may be held back"
    if times.discarded:
        yield f"our own event loop was late, so no {' and no '.join(map(str.upper, times.discarded))} was taken"


def liveness(
    target: ProbeTargetSettings,
    at: float,
    judgement: Judgement,
    exchange: Exchange | None = None,
    models: tuple[str, ...] = (),
    secrets: tuple[str, ...] = (),
) -> ProbeLiveness:
    """What asking for the list of models has shown."""
    return ProbeLiveness(
        target=target.name,
        placement=target.placement,
        at=at,
        outcome=judgement.outcome,
        detail=excerpt(judgement.message, secrets),
        remedy=REMEDY[judgement.outcome],
        duration_seconds=None if exchange is None else max(0, exchange.end_ns - exchange.stamps.started_ns) / 1e9,
        http_status=None if exchange is None else exchange.status,
        models=models,
    )
