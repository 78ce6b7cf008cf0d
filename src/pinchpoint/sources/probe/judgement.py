"""What an exchange amounts to: exactly one outcome, and the server's own words. Pure."""

from dataclasses import dataclass, field, replace

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import refusal
from pinchpoint.sources.probe.cause import Cause
from pinchpoint.sources.probe.error_body import ErrorFacts, error_facts, is_error, parse_json
from pinchpoint.sources.probe.event import TextKind
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.retry_after import retry_after_seconds
from pinchpoint.sources.probe.transcript import Transcript

_ANSWERS = ("choices", "output", "content", "candidates")  # where a whole answer is, dialect by dialect
_FILTERED = ("content_filter", "sensitive", "safety", "prohibited_content", "blocklist", "recitation", "spii")
_BROKEN = ("error", "abort", "network_error")
_HTTPS_WANTED = ("http request was sent to https port", "http request to an https server")
_WAITING_HELPS = frozenset(  # elsewhere "wait 5 seconds" in a message is about something else
    {
        ProbeOutcome.RATE_LIMITED,
        ProbeOutcome.QUOTA,
        ProbeOutcome.OVERLOADED,
        ProbeOutcome.SERVER_ERROR,
        ProbeOutcome.STREAM_ERROR,
        ProbeOutcome.ENGINE_DEAD,
        ProbeOutcome.PROXY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """``message`` is not redacted yet. ``wrong_path``: nothing of this API is at that URL, but at another it may be.

    ``status`` and ``location`` are the answer's own; ``retry_after_seconds`` is how long the server asks to wait.
    """

    outcome: ProbeOutcome
    message: str = field(default="", repr=False)
    cause: Cause | None = None
    facts: ErrorFacts = field(default_factory=ErrorFacts, repr=False)
    wrong_path: bool = False
    status: int | None = None
    location: str = field(default="", repr=False)
    retry_after_seconds: float | None = None


def judge(exchange: Exchange) -> Judgement:
    """The outcome in the order of what is known best: the status and its body, then the stream, then the transport."""
    judged = _judged(exchange)
    wait = None
    if judged.outcome in _WAITING_HELPS:
        wait = retry_after_seconds(exchange.headers, judged.facts, exchange.received_at)
    return replace(judged, status=exchange.status, location=exchange.location, retry_after_seconds=wait)


def _judged(exchange: Exchange) -> Judgement:
    status = exchange.status
    if status is None:
        failure = exchange.failure or ProbeOutcome.INTERNAL
        cause = Cause.NO_HTTP if failure is ProbeOutcome.INVALID_RESPONSE else None
        return Judgement(outcome=failure, message=exchange.message, cause=cause)
    if not 200 <= status < 300:
        return _refused(exchange, status)
    if exchange.body is not None:
        return _not_a_stream(exchange.content_type, exchange.body)
    return _streamed(exchange.transcript, exchange.failure, exchange.message)


def _refused(exchange: Exchange, status: int) -> Judgement:
    body = exchange.body or ""
    outcome, facts = refusal.of_answer(status, exchange.content_type, body)
    is_page = refusal.is_page(exchange.content_type, body)
    target = f" to {exchange.location}" if exchange.location else ""
    cause = None
    if outcome is ProbeOutcome.FORBIDDEN and refusal.stream_not_allowed(facts):
        cause = Cause.STREAM_NOT_ALLOWED
    elif any(phrase in body.lower() for phrase in _HTTPS_WANTED):
        cause = Cause.HTTPS_WANTED
    elif is_page:
        cause = Cause.HTML_PAGE
    hint = f"{cause}: " if cause is Cause.STREAM_NOT_ALLOWED else ""
    said = f": {facts.message}" if facts.message else ""
    page = " with a page of HTML" if is_page else ""
    return Judgement(
        outcome=outcome,
        message=f"{hint}HTTP {status}{target}{page}{said}",
        cause=cause,
        facts=facts,
        wrong_path=outcome is ProbeOutcome.NOT_FOUND or (outcome is ProbeOutcome.BAD_REQUEST and status == 405),
    )


def _not_a_stream(content_type: str, body: str) -> Judgement:
    if refusal.is_page(content_type, body):
        outcome = ProbeOutcome.PROXY if refusal.is_proxy_page(body) else ProbeOutcome.INVALID_RESPONSE
        message = "HTTP 200 with a page of HTML"
        return Judgement(outcome=outcome, message=message, cause=Cause.HTML_PAGE, wrong_path=True)
    document = parse_json(body)
    if is_error(document):
        return _reported(document, otherwise=ProbeOutcome.SERVER_ERROR)
    if isinstance(document, list) and document:
        document = document[0]
    if isinstance(document, dict) and any(document.get(name) for name in _ANSWERS):
        message = "HTTP 200 with a whole completion, not a stream"
        return Judgement(outcome=ProbeOutcome.NOT_STREAMED, message=message, cause=Cause.WHOLE)
    return Judgement(
        outcome=ProbeOutcome.INVALID_RESPONSE,
        message=f"HTTP 200 with JSON that is no completion: {body}",
        cause=Cause.NO_CHOICES,
    )


def _reported(error: object, *, otherwise: ProbeOutcome) -> Judgement:
    """An error that came with a 200. A status that the body names stands for the one that the server kept back."""
    facts = error_facts(error)
    if facts.status is not None and facts.status < 500 and otherwise is ProbeOutcome.SERVER_ERROR:
        otherwise = ProbeOutcome.BAD_REQUEST
    return Judgement(outcome=refusal.of_error(facts, None) or otherwise, message=facts.message, facts=facts)


def _streamed(transcript: Transcript, failure: ProbeOutcome | None, message: str) -> Judgement:
    if transcript.error is not None:  # first, for the connection often breaks right after it
        return _reported(transcript.error, otherwise=ProbeOutcome.STREAM_ERROR)
    if transcript.malformed:
        return Judgement(
            outcome=ProbeOutcome.INVALID_RESPONSE,
            message=f"{transcript.malformed} events in the stream are not JSON objects",
        )
    if not transcript.ended:
        seen = f"{transcript.text_events} chunks of text had come"
        reason = message or "the stream ended without finish_reason and [DONE]"
        return Judgement(outcome=failure or ProbeOutcome.TRUNCATED, message=f"{reason}; {seen}")
    finish = (transcript.finish_reason or "").lower()
    if finish in _FILTERED:
        return Judgement(outcome=ProbeOutcome.CONTENT_FILTER, message=f"finish_reason {finish}")
    if finish in _BROKEN:
        return Judgement(outcome=ProbeOutcome.STREAM_ERROR, message=f"finish_reason {finish}")
    if not transcript.choices:
        message = "the stream held no choices"
        return Judgement(outcome=ProbeOutcome.INVALID_RESPONSE, message=message, cause=Cause.NO_CHOICES)
    return _emptiness(transcript) or Judgement(outcome=ProbeOutcome.OK)


def _emptiness(transcript: Transcript) -> Judgement | None:
    """An answer without text. Streamed reasoning is text: the engine worked, it only did not get to its answer."""
    if {TextKind.CONTENT, TextKind.REASONING, TextKind.SUMMARY} & transcript.kinds:
        return None
    usage, cause = transcript.usage, None
    if TextKind.REFUSAL in transcript.kinds:
        cause, words = Cause.REFUSAL, "the model refused to answer"
    elif TextKind.TOOL in transcript.kinds:
        cause, words = Cause.TOOL_ONLY, "the model called a tool and said nothing"
    elif usage is not None and usage.reasoning_tokens:
        share = f"{usage.reasoning_tokens} of {usage.completion_tokens} tokens"
        cause, words = Cause.REASONING_BUDGET, f"{share} went into hidden reasoning"
    else:
        words = f"finish_reason {transcript.finish_reason} without text"
    message = f"{cause}: {words}" if cause is not None else words
    return Judgement(outcome=ProbeOutcome.EMPTY_OUTPUT, message=message, cause=cause)
