"""Which outcome a server's error stands for. Pure.

The body beats the status, for aggregators lie about the status: an unknown model comes as 503, an empty account as
429 or 403, a dead engine as 200. Rules are tried in order and the order is meaning: see each comment. Matching is on
lower-case substrings of the error's codes first and of whole phrases of its text second.

Sources: the error pages of OpenAI, Anthropic, Google, DeepSeek, OpenRouter, Model Studio and Zhipu; vLLM's, SGLang's
and llama.cpp's serving errors; bodies in public reports on new-api, one-api, LiteLLM, Moonshot and Azure.
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
    "insufficient credits",
    "balance is insufficient",
    "quota exceeded",
    "quota is not enough",
    "pre_consume_token_quota_failed",
    "credit_balance_exhausted",
    "credit balance is too low",
    "doesn't have any credits",
    "specified api usage limits",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "budget_exceeded",
    "budget has been exceeded",
    "accountoverdue",
    "arrearage",
    "freetieronly",
    "余额不足",
    "额度不足",
    "额度已用尽",
    "预扣费额度失败",
    "欠费",
)  # never the bare word: Google's ordinary rate limit says "(e.g. check quota)"
_MODEL_UNKNOWN = (
    "model_not_found",
    "model_not_available",
    "model_decommissioned",
    "no available channel for model",
    "is not a valid model",
    "invalid model",
    "model not exist",
    "无可用渠道",
    "模型不存在",
)
_CONTEXT = (
    "context_length_exceeded",
    "maximum context length",
    "model's context length",
    "available context size",
    "exceed_context_size",
    "prompt is too long",
    "input token count",
    "range of input length",
    "contextwindowexceedederror",
    "request_too_large",
    "max_model_len",
)
_ENGINE_DEAD = (
    "enginecore",
    "enginedeaderror",
    "engine dead",
    "background loop has errored",
    "background loop is stopped",
    "cuda out of memory",
    "illegal memory access",
    "failed to load",
)
_FILTERED = (
    "content_filter",
    "responsibleaipolicyviolation",
    "prohibited_content",
    "content management policy",
    "data_inspection_failed",
    "datainspectionfailed",
    "blockreason",
)
_AUTH = (
    "api_key_invalid",
    "incorrect api key",
    "invalid api key",
    "only authorized for use with claude code",
    "oauth authentication is currently not",
    "无效的令牌",
)
_GATEWAY_WORDS = (
    "upstream connect error",
    "no healthy upstream",
    "no available server",
    "invalid response was received from the upstream",
    "failure to get a peer",
)


def _google_rate_limit(facts: ErrorFacts, _status: int) -> ProbeOutcome | None:
    # RESOURCE_EXHAUSTED says "exceeded your current quota" for limits per minute too; only a daily one is a quota.
    if not facts.has_code("resource_exhausted"):
        return None
    return ProbeOutcome.QUOTA if "perday" in facts.text else ProbeOutcome.RATE_LIMITED


def _throttled(facts: ErrorFacts, _status: int) -> ProbeOutcome | None:
    # Model Studio's Throttling.AllocationQuota, "Allocated quota exceeded", is a limit per minute.
    return ProbeOutcome.RATE_LIMITED if facts.has_code("throttling") else None


def _content_filter(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    flagged = status == 403 and "flagged" in facts.text
    return ProbeOutcome.CONTENT_FILTER if flagged or facts.says(*_FILTERED) else None


def _quota(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # Before rate_limited, forbidden and auth: an empty account comes as 429, as 403 and as 401.
    return ProbeOutcome.QUOTA if status == 402 or facts.says(*_QUOTA) else None


def _deployment_not_found(facts: ErrorFacts, _status: int) -> ProbeOutcome | None:
    # Before model_not_found: on Azure it is part of the URL.
    return ProbeOutcome.NOT_FOUND if facts.has_code("deploymentnotfound") else None


def _model_not_found(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # Before overloaded: new-api and one-api answer 503 for a model that no channel serves.
    gone = "model" in facts.text and facts.says("does not exist", "not found")
    gone = gone or (facts.has_code("not_found_error") and facts.message.startswith("model"))  # Anthropic: "model: NAME"
    return (
        ProbeOutcome.MODEL_NOT_FOUND if facts.says(*_MODEL_UNKNOWN) or (gone and status in (0, 400, 404, 503)) else None
    )


def _context_length(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    return ProbeOutcome.CONTEXT_LENGTH if status in (0, 400, 413, 422) and facts.says(*_CONTEXT) else None


def _engine_dead(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    return ProbeOutcome.ENGINE_DEAD if (status == 0 or status >= 500) and facts.says(*_ENGINE_DEAD) else None


def _auth(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("invalid_api_key", "authentication_error") or facts.says(*_AUTH)
    return ProbeOutcome.AUTH if status == 401 or named or facts.message.strip().lower() == "unauthorized" else None


def _overloaded_by_name(facts: ErrorFacts, _status: int) -> ProbeOutcome | None:
    # Before rate_limited: Moonshot's engine_overloaded_error comes as 429, and no slower pace of ours would help.
    return ProbeOutcome.OVERLOADED if facts.has_code("overloaded", "slow_down") else None


def _rate_limited(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("rate_limit") or facts.says("no deployments available", "rate limit")
    return ProbeOutcome.RATE_LIMITED if status == 429 or named else None


def _forbidden(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    named = facts.has_code("permission_error", "permission_denied", "unsupported_country") or facts.says(
        "user location is not supported"
    )
    return ProbeOutcome.FORBIDDEN if status == 403 or named or stream_not_allowed(facts) else None


def _overloaded(facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    return ProbeOutcome.OVERLOADED if status in (503, 529) or facts.has_code("unavailable") else None


def _not_found(_facts: ErrorFacts, status: int) -> ProbeOutcome | None:
    # A redirect counts: following it would turn the POST into a GET and measure some page.
    return ProbeOutcome.NOT_FOUND if status == 404 or 300 <= status < 400 else None


_RULES: tuple[Callable[[ErrorFacts, int], ProbeOutcome | None], ...] = (
    _google_rate_limit,
    _throttled,
    _content_filter,
    _quota,
    _deployment_not_found,
    _model_not_found,
    _context_length,
    _engine_dead,
    _auth,
    _overloaded_by_name,
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
    if is_page(content_type, body):
        facts = ErrorFacts()  # its words are for people at a browser
        if status >= 500 and (is_proxy_page(body) or 520 <= status <= 527):
            return ProbeOutcome.PROXY, facts
    else:
        document = parse_json(body)
        facts = error_facts(body if document is None else document)
        if _is_gateway(status, document, facts):
            return ProbeOutcome.PROXY, facts
    found = ProbeOutcome.PROXY if status == 407 else of_error(facts, status)
    if found is None:
        found = ProbeOutcome.SERVER_ERROR if status == 408 or status >= 500 else ProbeOutcome.BAD_REQUEST
    return found, facts


def _is_gateway(status: int, document: object, facts: ErrorFacts) -> bool:
    """Whether a gateway says in words, not in HTML, that it has nobody to hand the request to."""
    if status == 407 or (isinstance(document, dict) and bool(document.get("cloudflare_error"))):
        return True
    return status >= 500 and (facts.says(*_GATEWAY_WORDS) or facts.text.startswith("error code: 5"))


def is_page(content_type: str, body: str) -> bool:
    """Whether the body is a page for people."""
    return "html" in content_type or body.lstrip()[:15].lower().startswith(("<!doctype", "<html"))


def is_proxy_page(body: str) -> bool:
    """Whether a page of HTML bears the signature of a proxy or a balancer rather than of an application."""
    page = body[:65_536].lower()
    signs = ("nginx", "cloudflare", "haproxy", "envoy", "varnish", "squid", "awselb", "bad gateway", "gateway time-out")
    return any(sign in page for sign in signs)
