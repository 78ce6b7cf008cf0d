"""What a probe has cost, from its reading; the worst where that is not certain. Pure."""

from pinchpoint.snapshot import ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.spend.amount import Tokens

# The request never left, or it was refused before a token was made: no provider bills that.
_NEVER_SENT = frozenset(
    {ProbeOutcome.DNS, ProbeOutcome.CONNECT_REFUSED, ProbeOutcome.CONNECT_TIMEOUT, ProbeOutcome.TLS}
)
_REFUSED = frozenset(
    {
        ProbeOutcome.AUTH,
        ProbeOutcome.FORBIDDEN,
        ProbeOutcome.MODEL_NOT_FOUND,
        ProbeOutcome.NOT_FOUND,
        ProbeOutcome.QUOTA,
        ProbeOutcome.RATE_LIMITED,
        ProbeOutcome.CONTEXT_LENGTH,
        ProbeOutcome.BAD_REQUEST,
        ProbeOutcome.OVERLOADED,
    }
)
# The answer has ended, so the counts that came with it are the last ones.
_COMPLETE = frozenset({ProbeOutcome.OK, ProbeOutcome.NOT_STREAMED, ProbeOutcome.EMPTY_OUTPUT})


def billed(reading: ProbeReading, most: Tokens) -> Tokens:
    """The tokens that the provider will bill. ``most`` is the worst that one request can take.

    Counts are believed only of a complete answer and where they are plausible: a server that counts nothing while it
    writes text would be free for ever. A probe that was sent twice may be billed twice.
    """
    return _last_request(reading, most) + (most if reading.resent else Tokens())


def _last_request(reading: ProbeReading, most: Tokens) -> Tokens:
    status, outcome = reading.http_status, reading.outcome
    if outcome in _NEVER_SENT and status is None:
        return Tokens()
    if outcome in _REFUSED and (status is None or status >= 400):
        return Tokens()
    prompt, completion = reading.prompt_tokens, reading.completion_tokens
    if outcome not in _COMPLETE or reading.token_source != "usage" or not prompt or completion is None:  # noqa: S105
        return most
    if not completion and reading.characters:
        return most
    return Tokens(input=prompt, output=completion, cached=min(reading.cached_tokens or 0, prompt))
