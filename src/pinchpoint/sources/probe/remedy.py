"""What to do about each outcome: one line for a tired person."""

from collections.abc import Mapping

from pinchpoint.snapshot import ProbeOutcome

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
    ProbeOutcome.NOT_FOUND: "No chat API at that path, with or without /v1: check the target's url.",
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
    ProbeOutcome.INVALID_RESPONSE: "What answers is not an OpenAI-compatible API: check the target's url.",
    ProbeOutcome.EMPTY_OUTPUT: "It finished without text: give a reasoning model max_tokens 1024, or less effort.",
    ProbeOutcome.CANCELLED: "",
    ProbeOutcome.INTERNAL: "A defect of pinchpoint: its log has the traceback; please report it.",
}
