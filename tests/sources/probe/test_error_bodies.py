"""Every refusal that a server was seen to send: its reason, what to do, and how long to wait."""

import json
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.case import Case
from pinchpoint.sources.probe.dialects import DIALECTS
from pinchpoint.sources.probe.exchange import Exchange
from pinchpoint.sources.probe.judgement import judge
from pinchpoint.sources.probe.remedy import remedy
from pinchpoint.sources.probe.sse import SseParser
from pinchpoint.sources.probe.tracing import Stamps

DATA = Path(__file__).parents[2] / "data"
BODIES = {path.stem: json.loads(path.read_text()) for path in sorted((DATA / "probe-errors").glob("*.json"))}
REAL = {path.stem: json.loads(path.read_text()) for path in sorted((DATA / "vllm-real" / "errors").glob("*.json"))}
LOCAL = {"url": "http://10.0.0.5:8000"}


def case_of(target: dict[str, Any], status: int, headers: dict[str, str], body: str, streamed: bool = False) -> Case:
    settings = ProbeTargetSettings.model_validate({"name": "t"} | target)
    exchange = Exchange(
        stamps=Stamps(started_ns=0),
        status=status,
        content_type=headers.get("content-type", ""),
        location=headers.get("location", ""),
        headers=headers,
        body=None if streamed else body,
    )
    if streamed:
        dialect = DIALECTS[settings.dialect]()
        for event in SseParser().feed(f"data: {body}\n\n".encode()):
            exchange.transcript.add(dialect.interpret(event), 1)
    key = settings.api_key.get_secret_value() if settings.api_key is not None else ""
    return Case(target=settings, judgement=judge(exchange), key=key, model=settings.model)


@pytest.mark.parametrize("name", BODIES)
def test_a_refusal_has_its_reason_its_remedy_and_its_wait(name: str):
    said = BODIES[name]
    body = said["body"] if isinstance(said["body"], str) else json.dumps(said["body"], ensure_ascii=False)
    case = case_of(said.get("target", LOCAL), said["status"], said["headers"], body, said.get("stream", False))
    assert case.judgement.outcome == said["reason"]
    assert said["remedy"] in remedy(case)
    assert case.judgement.retry_after_seconds == said.get("retry_after_seconds")


REAL_REFUSALS = {
    "bad-key": ("auth", "vLLM: --api-key"),
    "bad-scheme": ("auth", "vLLM: --api-key"),
    "no-key": ("auth", "No key was sent"),
    "models-no-key": ("auth", "No key was sent"),
    "unknown-model": ("model_not_found", "it serves tiny-qwen2"),
    "unknown-model-stream": ("model_not_found", "it serves tiny-qwen2"),
    "not-found-path": ("not_found", "check the target's url"),
    "models-single": ("not_found", "check the target's url"),
    "embeddings-unsupported": ("not_found", "check the target's url"),
    "context-prompt-too-long": ("context_length", "lower prompt_words (64) or max_tokens (32)"),
    "context-prompt-too-long-stream": ("context_length", "lower prompt_words (64) or max_tokens (32)"),
    "context-max-tokens-too-large": ("context_length", "lower prompt_words (64) or max_tokens (32)"),
    "bad-max-tokens-zero": ("bad_request", "refuses max_tokens"),
    "bad-temperature": ("bad_request", "refuses temperature"),
    "bad-type-max-tokens": ("bad_request", "refuses body.max_tokens"),
    "missing-messages": ("bad_request", "refuses body.messages"),
    "stream-options-without-stream": ("bad_request", "refuses stream_options"),
    "empty-messages": ("bad_request", "adapt the target's parameters"),
    "malformed-json": ("bad_request", "refuses body.10"),
    "wrong-content-type": ("bad_request", "adapt the target's parameters"),
    "method-not-allowed": ("bad_request", "check the target's url"),
    "ok-chat": ("not_streamed", "ignores stream=true"),
}


@pytest.mark.parametrize("name", REAL_REFUSALS)
def test_a_real_vllm_refusal_has_its_reason_and_its_remedy(name: str):
    said = REAL[name]
    sent = said["request"]["headers"].get("Authorization", "")
    target = LOCAL | {"model": "nope"} | ({"api_key": "sk-test"} if sent else {})
    case = case_of(target, said["status"], said["headers"], said["body"])
    reason, words = REAL_REFUSALS[name]
    assert case.judgement.outcome == reason
    assert words in remedy(case)


def test_no_real_refusal_is_left_out():
    assert {name for name, said in REAL.items() if said["status"] >= 400} <= set(REAL_REFUSALS)


def test_every_refusal_of_the_closed_list_has_a_body():
    needs_none = {"ok", "dns", "connect_refused", "connect_timeout", "tls", "reset", "first_token_timeout", "stalled"}
    needs_none |= {"overall_timeout", "truncated", "empty_output", "internal"}
    assert {said["reason"] for said in BODIES.values()} == {outcome.value for outcome in ProbeOutcome} - needs_none


def test_a_page_that_says_the_port_wants_https_is_told_of_once():
    page = "<html><center>The plain HTTP request was sent to HTTPS port</center><hr>nginx</html>"
    case = case_of(LOCAL, 400, {"content-type": "text/html"}, page)
    assert case.judgement.message == "HTTP 400 with a page of HTML"
    assert "begin url with https://" in remedy(case)
