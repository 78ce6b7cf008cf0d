"""What to do about each outcome: one line for a tired person. Pure.

``REMEDY`` knows the outcome alone, as an alert does. ``remedy`` knows the case: where the target is, what was sent
there and what came back. It quotes nothing of a key, and of a server's words only what is redacted.
"""

from collections.abc import Mapping

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.case import Case
from pinchpoint.sources.probe.case_remedies import REMEDIES_BY_CASE

REMEDY: Mapping[ProbeOutcome, str] = {
    ProbeOutcome.OK: "",
    ProbeOutcome.DNS: "The host name does not resolve: check the target's url and this host's resolver.",
    ProbeOutcome.CONNECT_REFUSED: "Nothing listens at that address: start the server, or correct the target's url.",
    ProbeOutcome.CONNECT_TIMEOUT: "No connection in time: look for a firewall, a wrong address, a host that is down.",
    ProbeOutcome.TLS: "The TLS handshake failed: check the certificate's name, dates and issuer, and http or https.",
    ProbeOutcome.PROXY: "A proxy refused, or has no healthy server behind it: look at its log and its upstreams.",
    ProbeOutcome.RESET: "The server closed the connection without an answer: look for a crash or restart in its log.",
    ProbeOutcome.FIRST_TOKEN_TIMEOUT: "No text in time: look at the engine's queue, then at deadlines.first_token.",
    ProbeOutcome.STALLED: "Text began and then stopped: look for preemption, a hung GPU, or a dead worker.",
    ProbeOutcome.OVERALL_TIMEOUT: "Text still came at the deadline: decoding is slow, or max_tokens too large for it.",
    ProbeOutcome.AUTH: "The key was refused: check api_key or api_key_file.",
    ProbeOutcome.FORBIDDEN: "The key is known but not allowed: check the account's rights, region and verification.",
    ProbeOutcome.MODEL_NOT_FOUND: "No such model there: compare model with what the server lists at /v1/models.",
    ProbeOutcome.NOT_FOUND: "No such API at that path, with or without /v1: check the target's url.",
    ProbeOutcome.QUOTA: "The account has no quota or balance left: pay, or raise its limit.",
    ProbeOutcome.RATE_LIMITED: "Too many requests for this account: lengthen interval_seconds, or raise its limit.",
    ProbeOutcome.CONTEXT_LENGTH: "The probe is longer than the model's context: lower prompt_words or max_tokens.",
    ProbeOutcome.CONTENT_FILTER: "A content filter took the answer: check the filter's rules for this deployment.",
    ProbeOutcome.BAD_REQUEST: "The server does not accept the request: adapt the target's parameters to what it says.",
    ProbeOutcome.OVERLOADED: "The server turns requests away: look at its queue, and whether it is ready yet.",
    ProbeOutcome.ENGINE_DEAD: "The engine behind the API has died: restart it, and keep its log.",
    ProbeOutcome.SERVER_ERROR: "The server failed by itself: its log has the reason.",
    ProbeOutcome.STREAM_ERROR: "The server broke off with an error in the stream: its log has the reason.",
    ProbeOutcome.TRUNCATED: "The answer broke off: look for a crash, a restart, or an idle timeout of a proxy.",
    ProbeOutcome.NOT_STREAMED: "The answer came in one lump: turn off buffering and compression in proxy and gateway.",
    ProbeOutcome.INVALID_RESPONSE: "What answers is not the API that was asked: check the target's url and dialect.",
    ProbeOutcome.EMPTY_OUTPUT: "It finished without text: give a reasoning model max_tokens 1024, or less effort.",
    ProbeOutcome.INTERNAL: "A defect of pinchpoint: its log has the traceback; please report it.",
}

_ELSEWHERE = "nothing to mend here; if it lasts, see the provider's status page"
_HOSTED: Mapping[ProbeOutcome, str] = {  # where nobody here can start, restart or read a log
    ProbeOutcome.CONNECT_REFUSED: "The provider's address refuses: check the target's url, and this site's firewall.",
    ProbeOutcome.CONNECT_TIMEOUT: "No connection in time: if this site wants a proxy used, set the target's proxy.",
    ProbeOutcome.RESET: "The connection was cut without an answer: a firewall here does so, or the provider restarts.",
    ProbeOutcome.FIRST_TOKEN_TIMEOUT: "No text in time: raise deadlines.first_token for a model that reasons long, or "
    "lower parameters.reasoning_effort; else the provider is slow.",
    ProbeOutcome.STALLED: f"Text began and then stopped at the provider: {_ELSEWHERE}.",
    ProbeOutcome.AUTH: "The key was refused: make a new one in the provider's console and put it into api_key_file.",
    ProbeOutcome.OVERLOADED: f"The provider is overloaded: {_ELSEWHERE}.",
    ProbeOutcome.ENGINE_DEAD: f"The provider's engine has died: {_ELSEWHERE}, or name another model.",
    ProbeOutcome.SERVER_ERROR: f"The provider failed by itself: {_ELSEWHERE}.",
    ProbeOutcome.STREAM_ERROR: f"The provider broke off with an error: {_ELSEWHERE}.",
    ProbeOutcome.TRUNCATED: "The answer broke off: a proxy's or firewall's idle timeout on the way, or the provider.",
}


def remedy(case: Case) -> str:
    """The line that fits the case best; empty where there is nothing to do."""
    outcome = case.judgement.outcome
    for by_case in REMEDIES_BY_CASE.get(outcome, ()):
        if line := by_case(case):
            return line
    return _HOSTED.get(outcome, REMEDY[outcome]) if case.hosted else REMEDY[outcome]
