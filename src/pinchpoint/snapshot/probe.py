"""The result of one synthetic request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# In the order of time; a probe's first_content is none of them, for it lies within generation.
PROBE_PHASES = ("resolve", "connect", "tls", "send", "headers", "first_token", "generation")


class Placement(StrEnum):
    LOCAL = "local"
    HOSTED = "hosted"


class ProbeOutcome(StrEnum):
    """What became of a probe: ``ok``, or exactly one failure reason. A label value: the set is closed."""

    OK = "ok"
    # no connection
    DNS = "dns"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    TLS = "tls"
    PROXY = "proxy"
    RESET = "reset"
    # too slow
    FIRST_TOKEN_TIMEOUT = "first_token_timeout"  # noqa: S105 - a reason, not a secret
    STALLED = "stalled"
    OVERALL_TIMEOUT = "overall_timeout"
    # refused
    AUTH = "auth"
    FORBIDDEN = "forbidden"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_FOUND = "not_found"
    QUOTA = "quota"
    RATE_LIMITED = "rate_limited"
    CONTEXT_LENGTH = "context_length"
    CONTENT_FILTER = "content_filter"
    BAD_REQUEST = "bad_request"
    # broken
    OVERLOADED = "overloaded"
    ENGINE_DEAD = "engine_dead"
    SERVER_ERROR = "server_error"
    STREAM_ERROR = "stream_error"
    TRUNCATED = "truncated"
    NOT_STREAMED = "not_streamed"
    INVALID_RESPONSE = "invalid_response"
    EMPTY_OUTPUT = "empty_output"
    # ours
    INTERNAL = "internal"


class ProbeSkip(StrEnum):
    """Why a probe that was due was not sent. A label value: the set is closed."""

    OVERLAP = "overlap"  # the one before was still going
    TOO_SOON = "too_soon"  # after a restart, or by another process with the same ledger
    BUDGET = "budget"  # a cap leaves no room for the worst that it can cost
    BACKOFF = "backoff"  # the server is busy, or has said when to come again
    AUTH_STOP = "auth_stop"  # the key is refused: once an hour until that is mended
    QUOTA_STOP = "quota_stop"  # the account is empty: likewise
    LEDGER = "ledger"  # what it costs can't be written down


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading:
    """One synthetic request, judged.

    TTFT: from just before the request is sent on an open connection to the first event with generated text (content,
    reasoning or tool call). TPOT: (last text - first text) / (tokens - first chunk's tokens), the per-request mean.
    Both are ``None`` where undefined. ``phases`` are seconds: resolve, connect, tls, send, headers, first_token,
    first_content, generation.
    """

    target: str
    placement: Placement
    at: float
    outcome: ProbeOutcome
    engine: str | None = None  # the engine behind the target, when the operator named it
    detail: str = ""  # one redacted line: what the server said
    remedy: str = ""  # one line: what to do
    ttft_seconds: float | None = None
    ttfc_seconds: float | None = None  # to the first visible content: later than TTFT when the model reasons first
    tpot_seconds: float | None = None
    duration_seconds: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    unfinished_phase: str | None = None  # the one of ``phases`` in which a failed probe ended: cut off, not measured
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    characters: int | None = None
    token_source: str | None = None  # usage or chunks
    tokens_per_chunk: float | None = None  # above 1 where several tokens share a chunk; counted by the server
    chunk_gaps_seconds: tuple[float, ...] = ()  # between the socket reads that brought text
    buffered: bool = False  # the stream came at once or in a few lumps: a proxy holds it back
    coalesced: bool = False  # so few chunks that they have no pace, though enough tokens
    discarded: tuple[str, ...] = ()  # latencies (ttft, ttfc, tpot) not believed, for our own event loop was late
    first_after_idle: bool = False  # the first answer since the start, a failure or a pause: warm-up may be in it
    reasoning: str | None = None  # streamed, summary, hidden (billed, inside TTFT, never shown); None for none known
    connection: str | None = None  # new or reused
    http_status: int | None = None
    retry_after_seconds: float | None = None  # how long the server asks to be left alone, at most an hour
    resent: bool = False  # an idle connection was closed in its face, so it was sent twice and may be billed twice
    model: str | None = None  # as it was asked
    compare_with: tuple[str, ...] = ()  # hosted targets that the operator holds this local one against

    @property
    def characters_per_second(self) -> float | None:
        """The pace of the text, which unlike tokens compares between any two models. ``None`` where TPOT is.

        Where tokens of reasoning are billed and not shown, a token has no length, so all of the text counts over the
        time from its first chunk on.
        """
        if not self.tpot_seconds or not self.characters:
            return None
        if self.reasoning in ("hidden", "summary"):
            seconds = self.phases.get("generation")
            return self.characters / seconds if seconds else None
        return self.characters / self.completion_tokens / self.tpot_seconds if self.completion_tokens else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeLiveness:
    """A target's list of models, asked for: free, so it says between two paid probes whether anybody is there.

    It says nothing about generation, and of a key only what the list demands: some are open to all.
    """

    target: str
    placement: Placement
    at: float
    outcome: ProbeOutcome
    detail: str = ""  # one redacted line
    remedy: str = ""
    duration_seconds: float | None = None
    http_status: int | None = None
    models: tuple[str, ...] = ()  # as listed, the first of them where there are very many
