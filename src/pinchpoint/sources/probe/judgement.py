"""What an exchange amounts to: exactly one outcome, and the server's own words. Pure."""

from dataclasses import dataclass, field

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import refusal
from pinchpoint.sources.probe.error_body import ErrorFacts, error_facts, parse_json
from pinchpoint.sources.probe.event import TextKind
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.transcript import Transcript

_ANSWERS = ("choices", "output", "content", "candidates")  # where a whole answer is, dialect by dialect


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """``message`` is not redacted yet. ``wrong_path``: nothing of this API is at that URL, but at another it may be."""

    outcome: ProbeOutcome
    message: str = field(default="", repr=False)
    facts: ErrorFacts = field(default_factory=ErrorFacts, repr=False)
    wrong_path: bool = False


def judge(exchange: Exchange) -> Judgement:
    """The outcome in the order of what is known best: the status and its body, then the stream, then the transport."""
    status = exchange.status
    if status is None:
        return Judgement(outcome=exchange.failure or ProbeOutcome.INTERNAL, message=exchange.message)
    if not 200 <= status < 300:
        return _refused(exchange, status)
    if exchange.body is not None:
        return _not_a_stream(exchange.content_type, exchange.body)
    return _streamed(exchange.transcript, exchange.failure, exchange.message)


def _refused(exchange: Exchange, status: int) -> Judgement:
    outcome, facts = refusal.of_answer(status, exchange.content_type, exchange.body or "")
    target = f" to {exchange.location}" if exchange.location else ""
    hint = "stream_not_allowed: " if outcome is ProbeOutcome.FORBIDDEN and refusal.stream_not_allowed(facts) else ""
    return Judgement(
        outcome=outcome,
        message=f"{hint}HTTP {status}{target}: {facts.message}".rstrip(": "),
        facts=facts,
        wrong_path=outcome is ProbeOutcome.NOT_FOUND or (outcome is ProbeOutcome.BAD_REQUEST and status == 405),
    )


def _not_a_stream(content_type: str, body: str) -> Judgement:
    if "html" in content_type:
        outcome = ProbeOutcome.PROXY if refusal.is_proxy_page(body) else ProbeOutcome.INVALID_RESPONSE
        return Judgement(outcome=outcome, message="HTTP 200 with a page of HTML", wrong_path=True)
    document = parse_json(body)
    if isinstance(document, list) and document:
        document = document[0]
    if isinstance(document, dict) and (document.get("error") or document.get("object") == "error"):
        return _reported(document, otherwise=ProbeOutcome.SERVER_ERROR)
    if isinstance(document, dict) and any(document.get(name) for name in _ANSWERS):
        return Judgement(outcome=ProbeOutcome.NOT_STREAMED, message="HTTP 200 with a whole completion, not a stream")
    return Judgement(outcome=ProbeOutcome.INVALID_RESPONSE, message=f"HTTP 200 with JSON that is no completion: {body}")


def _reported(error: object, *, otherwise: ProbeOutcome) -> Judgement:
    facts = error_facts(error)
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
    if transcript.finish_reason == "content_filter":
        return Judgement(outcome=ProbeOutcome.CONTENT_FILTER, message="finish_reason content_filter")
    if transcript.finish_reason in ("error", "abort"):
        return Judgement(outcome=ProbeOutcome.STREAM_ERROR, message=f"finish_reason {transcript.finish_reason}")
    if not transcript.choices:
        return Judgement(outcome=ProbeOutcome.INVALID_RESPONSE, message="the stream held no choices")
    return _emptiness(transcript) or Judgement(outcome=ProbeOutcome.OK)


def _emptiness(transcript: Transcript) -> Judgement | None:
    """An answer without text. Streamed reasoning is text: the engine worked, it only did not get to its answer."""
    if {TextKind.CONTENT, TextKind.REASONING, TextKind.SUMMARY} & transcript.kinds:
        return None
    usage = transcript.usage
    if TextKind.REFUSAL in transcript.kinds:
        cause = "refusal: the model refused to answer"
    elif TextKind.TOOL in transcript.kinds:
        cause = "tool_only: the model called a tool and said nothing"
    elif usage is not None and usage.reasoning_tokens:
        cause = (
            f"reasoning_budget: {usage.reasoning_tokens} of {usage.completion_tokens} tokens went into hidden reasoning"
        )
    else:
        cause = f"finish_reason {transcript.finish_reason} without text"
    return Judgement(outcome=ProbeOutcome.EMPTY_OUTPUT, message=cause)
