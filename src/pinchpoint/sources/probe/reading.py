"""From a judged exchange to the reading that the rest of the house sees. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.snapshot import ProbeLiveness, ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.case import Case
from pinchpoint.sources.probe.cause import Cause
from pinchpoint.sources.probe.excerpt import excerpt
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.remedy import remedy
from pinchpoint.sources.probe.timing import Timing, unfinished

_ENCODINGS = ("gzip", "deflate", "br", "zstd", "compress")
# These end in the middle of a phase.
_UNFINISHED = frozenset(
    {
        ProbeOutcome.CONNECT_TIMEOUT,
        ProbeOutcome.FIRST_TOKEN_TIMEOUT,
        ProbeOutcome.STALLED,
        ProbeOutcome.OVERALL_TIMEOUT,
        ProbeOutcome.TRUNCATED,
        ProbeOutcome.RESET,
    }
)
# In these no first token was seen as a user sees one.
_NO_LATENCY = frozenset({ProbeOutcome.NOT_STREAMED, ProbeOutcome.INVALID_RESPONSE})


def blank_reading(case: Case, at: float) -> ProbeReading:
    """The reading of a probe that never reached the wire."""
    return ProbeReading(
        target=case.target.name,
        placement=case.target.placement,
        at=at,
        outcome=case.judgement.outcome,
        engine=case.target.engine,
        detail=excerpt(case.judgement.message, (case.key,)),
        remedy=remedy(case),
        model=case.model,
        compare_with=tuple(case.target.compare_with),
    )


def reading(case: Case, at: float, exchange: Exchange, times: Timing) -> ProbeReading:
    """The reading of one exchange.

    A complete answer that came at once is ``not_streamed``; in lumps it is an answer, and its latencies are what a
    client sees. TTFT is kept for a probe that failed after its first token: it was seen. TPOT is kept for a complete
    answer only: of a broken one the number of tokens is not known.
    """
    if case.judgement.outcome is ProbeOutcome.OK and times.at_once:
        case = case.judged(
            outcome=ProbeOutcome.NOT_STREAMED, message="buffered: all text came at once", cause=Cause.BUFFERED
        )
    outcome = case.judgement.outcome
    transcript, stamps, usage = exchange.transcript, exchange.stamps, exchange.transcript.usage
    seen = outcome not in _NO_LATENCY
    end_ns = transcript.end_ns if transcript.ended and transcript.end_ns is not None else exchange.end_ns
    cut = unfinished(stamps, transcript, exchange.end_ns) if outcome in _UNFINISHED else None
    said = "; ".join(filter(None, (case.judgement.message, *_notes(exchange, times))))
    return replace(
        blank_reading(case, at),
        detail=excerpt(said, (case.key,)),
        ttft_seconds=times.ttft_seconds if seen else None,
        ttfc_seconds=times.ttfc_seconds if seen else None,
        tpot_seconds=times.tpot_seconds if outcome is ProbeOutcome.OK else None,
        duration_seconds=max(0, end_ns - stamps.started_ns) / 1e9,
        phases={**times.phases, **dict([cut] if cut else [])},
        unfinished_phase=cut[0] if cut else None,
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
        retry_after_seconds=case.judgement.retry_after_seconds,
        resent=exchange.resent,
    )


def _notes(exchange: Exchange, times: Timing) -> Iterator[str]:
    """What else is to be said of how the answer came."""
    if times.lumps:
        chunks, reads = exchange.transcript.text_events, exchange.transcript.text_reads
        yield f"buffered: {chunks} chunks of text came in {reads} lumps, so a proxy holds them back"
    if exchange.content_encoding not in ("", "identity"):
        # The word is the server's: only one that is known is repeated, for half a secret can't be told from a word.
        named = f" ({exchange.content_encoding})" if exchange.content_encoding in _ENCODINGS else ""
        yield f"compressed{named} though identity was asked, so text may be held back"
    if times.discarded:
        yield f"our own event loop was late, so no {' and no '.join(map(str.upper, times.discarded))} was taken"


def liveness(case: Case, at: float, exchange: Exchange | None = None, models: tuple[str, ...] = ()) -> ProbeLiveness:
    """What asking for the list of models has shown."""
    return ProbeLiveness(
        target=case.target.name,
        placement=case.target.placement,
        at=at,
        outcome=case.judgement.outcome,
        detail=excerpt(case.judgement.message, (case.key,)),
        remedy=remedy(case),
        duration_seconds=None if exchange is None else max(0, exchange.end_ns - exchange.stamps.started_ns) / 1e9,
        http_status=None if exchange is None else exchange.status,
        models=models,
    )
