"""Every shape in which servers say no, as they really say it, and the reason it stands for."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.error_body import error_facts
from pinchpoint.sources.probe.refusal import of_answer, of_error, stream_not_allowed

REAL = Path(__file__).parents[2] / "data" / "vllm-real" / "errors"

OPENAI_QUOTA = "You exceeded your current quota, please check your plan and billing details."
NGINX = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx/1.22.1</center></body></html>"
GEMINI_MINUTE = {
    "error": {
        "code": 429,
        "message": OPENAI_QUOTA,
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"violations": [{"quotaId": "GenerateContentInputTokensPerModelPerMinute-FreeTier"}]},
            {"retryDelay": "26s"},
        ],
    }
}
GEMINI_DAY = {
    "error": {
        "code": 429,
        "message": OPENAI_QUOTA,
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}],
    }
}
LITELLM_NESTED = {
    "error": {
        "message": "litellm.RateLimitError: OpenAIException - "
        + json.dumps({"error": {"message": "Too many requests", "type": "requests", "code": "rate_limit_exceeded"}}),
        "code": "429",
    }
}

BODIES: list[tuple[str, int, object]] = [
    ("auth", 401, {"error": {"message": "Incorrect API key provided: sk-1", "code": "invalid_api_key"}}),
    ("auth", 401, {"error": "Unauthorized"}),
    ("auth", 401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    ("auth", 400, {"error": {"message": "API key not valid.", "details": [{"reason": "API_KEY_INVALID"}]}}),
    ("forbidden", 400, {"error": {"message": "must be verified", "param": "stream", "code": "unsupported_value"}}),
    ("forbidden", 403, {"error": {"type": "permission_error", "message": "not yours"}}),
    ("forbidden", 403, {"error": {"code": "unsupported_country_region_territory"}}),
    ("model_not_found", 404, {"object": "error", "message": "The model `X` does not exist.", "code": 404}),
    ("model_not_found", 404, {"error": {"message": "The model `g` does not exist", "code": "model_not_found"}}),
    ("model_not_found", 503, {"error": {"code": "model_not_found", "message": "分组 default 无可用渠道"}}),
    ("model_not_found", 503, {"error": {"message": "当前分组 default 下对于模型  无可用渠道"}}),
    ("not_found", 404, {"error": {"code": "404", "message": "Resource not found"}}),
    ("not_found", 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}),
    ("not_found", 404, {"detail": "Not Found"}),
    ("not_found", 302, ""),
    ("quota", 429, {"error": {"message": OPENAI_QUOTA, "type": "insufficient_quota"}}),
    ("quota", 429, {"error": {"message": "insufficient balance", "type": "exceeded_current_quota_error"}}),
    ("quota", 403, {"error": {"message": "user quota is not enough", "code": "insufficient_user_quota"}}),
    ("quota", 402, {"error": {"message": "Insufficient Balance"}}),
    ("quota", 400, {"error": {"message": "Budget has been exceeded! Current cost: 1.2", "code": "429"}}),
    ("quota", 429, GEMINI_DAY),
    ("rate_limited", 429, GEMINI_MINUTE),
    ("rate_limited", 429, {"error": {"code": "429", "message": "Rate limit is exceeded. Try again in 2 seconds."}}),
    ("rate_limited", 429, [{"error": {"message": "(e.g. check quota)", "status": "RESOURCE_EXHAUSTED"}}]),
    ("rate_limited", 429, {"error": {"type": "rate_limit_reached_error", "message": "TPM rate limit, limit: 100"}}),
    ("rate_limited", 429, LITELLM_NESTED),
    ("rate_limited", 500, LITELLM_NESTED),
    ("context_length", 400, {"error": {"message": "This model's maximum context length is 2048 tokens. However…"}}),
    ("context_length", 400, {"error": {"message": "prompt is too long: 205351 tokens > 200000 maximum"}}),
    ("context_length", 400, {"error": {"status": "INVALID_ARGUMENT", "message": "The input token count exceeds"}}),
    ("context_length", 413, {"error": {"type": "request_too_large"}}),
    ("content_filter", 400, {"error": {"code": "content_filter", "message": "filtered"}}),
    ("content_filter", 400, {"error": {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}}}),
    ("content_filter", 403, {"error": {"code": 403, "message": "Your chosen model requires moderation: flagged"}}),
    ("bad_request", 422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden"}]}}),
    ("bad_request", 400, {"object": "error", "message": "max_tokens must be at least 1, got -186.", "code": 400}),
    ("bad_request", 400, {"error": {"code": "unsupported_value", "param": "temperature", "message": "unsupported"}}),
    ("bad_request", 405, {"detail": "Method Not Allowed"}),
    ("bad_request", 418, "teapot"),
    ("overloaded", 529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
    ("overloaded", 503, {"error": {"message": "queue is full"}}),
    ("overloaded", 500, {"error": {"status": "UNAVAILABLE", "message": "try later"}}),
    ("engine_dead", 500, {"error": {"message": "EngineCore encountered an issue.", "code": 500}}),
    ("engine_dead", 500, {"error": "llama runner failed to load the model"}),
    ("server_error", 500, "Internal Server Error"),
    ("server_error", 502, {"error": {"message": "model down"}}),
    ("server_error", 408, {"error": {"message": "timed out"}}),
    ("server_error", 500, ""),
    ("proxy", 520, {"cloudflare_error": True, "status": 520}),
    ("proxy", 502, NGINX),
    ("proxy", 407, "Proxy Authentication Required"),
]


@pytest.mark.parametrize(("reason", "status", "body"), BODIES)
def test_a_refusal_has_its_reason(reason: str, status: int, body: object):
    text = body if isinstance(body, str) else json.dumps(body)
    content_type = "text/html" if text.startswith("<") else "application/json"
    assert of_answer(status, content_type, text)[0] == reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("bad-key", "auth"),
        ("no-key", "auth"),
        ("bad-scheme", "auth"),
        ("unknown-model", "model_not_found"),
        ("unknown-model-stream", "model_not_found"),
        ("not-found-path", "not_found"),
        ("embeddings-unsupported", "not_found"),
        ("context-prompt-too-long", "context_length"),
        ("context-prompt-too-long-stream", "context_length"),
        ("context-max-tokens-too-large", "context_length"),
        ("bad-max-tokens-zero", "bad_request"),
        ("bad-temperature", "bad_request"),
        ("bad-type-max-tokens", "bad_request"),
        ("empty-messages", "bad_request"),
        ("malformed-json", "bad_request"),
        ("method-not-allowed", "bad_request"),
        ("missing-messages", "bad_request"),
        ("stream-options-without-stream", "bad_request"),
    ],
)
def test_a_real_vllm_refusal_has_its_reason_and_keeps_its_words(name: str, reason: str):
    capture = json.loads((REAL / f"{name}.json").read_text())
    outcome, facts = of_answer(capture["status"], capture["headers"]["content-type"], capture["body"])
    assert outcome == reason
    body = json.loads(capture["body"])
    error = body.get("error", body)
    assert facts.message == (error if isinstance(error, str) else error.get("message", error.get("detail")))


# vLLM 0.32 after a 200: the request slipped past the first look at a full queue (--max-num-queued-reqs).
VLLM_QUEUE_FULL = (
    "The engine is currently busy and cannot accept new requests. Please try again later or on a different instance."
)


@pytest.mark.parametrize(
    ("reason", "error"),
    [
        ("quota", {"message": "quota exceeded"}),
        ("engine_dead", {"message": "EngineCore encountered an issue.", "type": "Internal Server Error", "code": 500}),
        ("overloaded", {"type": "overloaded_error", "message": "Overloaded"}),
        ("overloaded", {"message": VLLM_QUEUE_FULL, "type": "Service Unavailable", "param": None, "code": 503}),
        ("rate_limited", {"code": 429, "message": "slow"}),
        (None, {"message": "something new", "code": 500}),
        (None, "no"),
    ],
)
def test_an_error_in_a_stream_has_a_reason_where_a_rule_names_one(reason: str | None, error: object):
    assert of_error(error_facts(error), None) == reason


def test_only_a_refused_stream_parameter_means_that_streaming_is_not_allowed():
    assert stream_not_allowed(error_facts({"error": {"param": "stream", "code": "unsupported_value"}}))
    assert not stream_not_allowed(error_facts({"error": {"param": "temperature", "code": "unsupported_value"}}))


def test_the_innermost_message_is_the_one_for_people():
    assert error_facts(LITELLM_NESTED).message == "Too many requests"


@given(status=st.integers(300, 599), body=st.text(max_size=60) | st.recursive(st.none() | st.integers() | st.text(max_size=8), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "status", "detail"]), v, max_size=4), max_leaves=10).map(json.dumps))  # fmt: skip  # noqa: E501
def test_every_answer_has_a_reason(status: int, body: str):
    assert of_answer(status, "application/json", body)[0] is not ProbeOutcome.OK


def test_a_body_that_nests_without_end_is_survived():
    assert of_answer(400, "application/json", '{"error":' * 9000 + "1" + "}" * 9000)[0] == "bad_request"


@pytest.mark.parametrize("message", ["{", "} {", "see {x}", "{" * 50])
def test_a_message_with_stray_braces_stays_as_it_is(message: str):
    assert error_facts({"error": {"message": message}}).message == message
