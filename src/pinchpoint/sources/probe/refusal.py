"""Which outcome a server's error stands for. Pure.

The body beats the status, for aggregators lie about the status: an unknown model comes as 503, an empty account as
429 or 403, a dead engine as 200. Rules are tried in order and the order is meaning: see each comment. Matching is on
lower-case substrings of the error's codes first and of whole phrases of its text second.

Sources: the error pages of OpenAI, Anthropic, Google, DeepSeek and OpenRouter; vLLM's serving errors; bodies in
public reports on new-api, one-api, LiteLLM, Moonshot and Azure.
"""

from collections.abc import Callable

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.error_body import ErrorFacts, error_facts, parse_json

_QUOTA = (
    "exceeded your current quota",
    "exceeded current quota",
    "exceeded_current_quota",
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient balance",
    "quota exceeded",
    "quota is not enough",
    "credit_balance_exhausted",
    "credit balance is too low",
    "billing_error",
    "budget_exceeded",
    "budget has been exceeded",
    "余额不足",
)  # never the bare word: Google's ordinary rate limit says "(e.g. check quota)"
_CONTEXT = (
    "context_length_exceeded",
    "maximum context length",
    "prompt is too long",
    "input token count",
    "contextwindowexceedederror",
    "request_too_large",
    "max_model_len",
)
_ENGINE_DEAD = (
    "enginecore",
    "enginedeaderror",
    "engine dead",
    "cuda out of memory",
    "illegal memory access",
    "failed to load",
)
_FILTERED = ("content_filter", "responsibleaipolicyviolation", "prohibited_content", "content management policy")


def _google_rate_limit(facts: ErrorFacts, _status: int) -> ProbeOutcome | None:
    # RESOURCE_EXHAUSTED says "exceeded your current quota" for limits per minute too; only a daily one is a quota.
    if not facts.has_code("resource_exhausted"):
        return None
    return ProbeOutcome.QUOTA if "perday" in facts.text else ProbeOutcome.RATE_LIMITED


def _content_filter(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    flagged = status == 403 and "flagged" in facts.text
    return ProbeOutcome.CONTENT_FILTER if flagged or facts.says(*_FILTERED) else None


def _quota(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # Before rate_limited and forbidden: an empty account comes as 429 and as 403.
    return ProbeOutcome.QUOTA if status == 402 or facts.says(*_QUOTA) else None


def _model_not_found(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # Before overloaded: new-api and one-api answer 503 for a model that no channel serves.
    gone = "model" in facts.text and facts.says("does not exist", "not found", "invalid model name")
    named = facts.says("model_not_found", "no available channel for model", "无可用渠道")
    return ProbeOutcome.MODEL_NOT_FOUND if named or (gone and status in (400, 404, 503)) else None


def _context_length(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    return ProbeOutcome.CONTEXT_LENGTH if status in (0, 400, 413, 422) and facts.says(*_CONTEXT) else None


def _engine_dead(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    return ProbeOutcome.ENGINE_DEAD if (status == 0 or status >= 500) and facts.says(*_ENGINE_DEAD) else None


def _auth(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("invalid_api_key", "authentication_error") or facts.says(
        "api_key_invalid", "incorrect api key"
    )
    return ProbeOutcome.AUTH if status == 401 or named or facts.text == "unauthorized" else None


def _rate_limited(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("rate_limit", "throttling_error") or facts.says("no deployments available", "rate limit")
    return ProbeOutcome.RATE_LIMITED if status == 429 or named else None


def _forbidden(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("permission_error", "permission_denied", "unsupported_country")
    return ProbeOutcome.FORBIDDEN if status == 403 or named or stream_not_allowed(facts) else None


def _overloaded(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("overloaded", "slow_down", "unavailable")
    return ProbeOutcome.OVERLOADED if status in (503, 529) or named else None


def _not_found(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # A redirect counts: following it would turn the POST into a GET and measure some page.
    return (
        ProbeOutcome.NOT_FOUND if status == 404 or 300 <= status < 400 or facts.has_code("deploymentnotfound") else None
    )


_RULES: tuple[Callable[[ErrorFacts, int], ProbeOutcome | None], ...] = (
    _google_rate_limit,
    _content_filter,
    _quota,
    _model_not_found,
    _context_length,
    _engine_dead,
    _auth,
    _rate_limited,
    _forbidden,
    _overloaded,
    _not_found,
)


def stream_not_allowed(facts: ErrorFacts) -> bool:
    """OpenAI refuses streaming to an unverified organisation. With another ``param`` that code is a bad parameter."""
    return facts.param == "stream" and facts.has_code("unsupported_value")


def of_error(facts: ErrorFacts, status: int | None) -> ProbeOutcome | None:
    """The outcome that a rule names, or ``None``. ``status`` is ``None`` for an error inside a stream."""
    effective = facts.status or status or 0
    return next((outcome for rule in _RULES if (outcome := rule(facts, effective)) is not None), None)


def of_answer(status: int, content_type: str, body: str) -> tuple[ProbeOutcome, ErrorFacts]:
    """The outcome of an answer that is not 2xx. Total: every status has one."""
    if "html" in content_type or body.lstrip()[:15].lower().startswith(("<!doctype", "<html")):
        facts = ErrorFacts(message=f"HTTP {status} with a page of HTML")
        if status >= 500 and (is_proxy_page(body) or 520 <= status <= 527):
            return ProbeOutcome.PROXY, facts
    else:
        document = parse_json(body)
        facts = error_facts(body if document is None else document)
        if status == 407 or (isinstance(document, dict) and document.get("cloudflare_error")):
            return ProbeOutcome.PROXY, facts
    found = ProbeOutcome.PROXY if status == 407 else of_error(facts, status)
    if found is None:
        found = ProbeOutcome.SERVER_ERROR if status == 408 or status >= 500 else ProbeOutcome.BAD_REQUEST
    return found, facts


def is_proxy_page(body: str) -> bool:
    """Whether a page of HTML bears the signature of a proxy or a balancer rather than of an application."""
    page = body[:65_536].lower()
    return any(sign in page for sign in ("nginx", "cloudflare", "haproxy", "envoy", "varnish", "squid", "bad gateway"))
