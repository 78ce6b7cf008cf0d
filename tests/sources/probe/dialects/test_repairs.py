"""Parameters that servers refuse, in their own words: one refusal teaches the prober, and it is paid once."""

from collections.abc import Callable
from typing import Any

import pytest

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.dialects import DIALECTS, DialectName, Parameters
from tests.fakes.openai_server import Answer, FakeOpenAI, FakeRequest, Wire, replying
from tests.sources.probe.conftest import MakeProber
from tests.sources.probe.dialects.test_requests import STREAM, hosted, streaming

Body = dict[str, Any]
HOT = {"temperature": 0.5, "reasoning_effort": "low"}

# dialect, what the server objects to, its words, what is sent from then on
REFUSALS: dict[str, tuple[str, Callable[[Body], bool], int, Any, Callable[[Body], bool]]] = {
    "OpenAI: max_completion_tokens": (
        "openai_chat",
        lambda body: "max_tokens" in body,
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
                "type": "invalid_request_error",
                "param": "max_tokens",
                "code": "unsupported_parameter",
            }
        },
        lambda body: body["max_completion_tokens"] == 20,
    ),
    "OpenAI: temperature": (
        "openai_chat",
        lambda body: "temperature" in body,
        400,
        {
            "error": {
                "message": "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default "
                "(1) value is supported.",
                "type": "invalid_request_error",
                "param": "temperature",
                "code": "unsupported_value",
            }
        },
        lambda body: body["reasoning_effort"] == "low",
    ),
    "OpenAI: reasoning_effort": (
        "openai_chat",
        lambda body: "reasoning_effort" in body,
        400,
        {"error": {"message": "Unrecognized request argument supplied: reasoning_effort", "param": None}},
        lambda body: body["temperature"] == 0.5,
    ),
    "Mistral: stream_options": (
        "openai_chat",
        lambda body: "stream_options" in body,
        422,
        {
            "object": "error",
            "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"]}]},
            "type": "invalid_request_error",
        },
        lambda body: body["max_tokens"] == 20,
    ),
    "an aggregator's minimum, in a wrapper": (
        "openai_chat",
        lambda body: body["max_tokens"] < 24,
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"error": {"message": "Invalid \'max_output_tokens\': integer below minimum value. '
                    'Expected a value >= 24, but got 20 instead. (max_tokens)"}}'
                },
            }
        },
        lambda body: body["max_tokens"] == 24,
    ),
    "Azure: max_completion_tokens": (
        "azure_openai",
        lambda body: "max_tokens" in body,
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                "'max_completion_tokens' instead.",
                "code": "unsupported_parameter",
                "param": "max_tokens",
            }
        },
        lambda body: body["max_completion_tokens"] == 20,
    ),
    "Responses: the minimum": (
        "openai_responses",
        lambda body: body["max_output_tokens"] < 32,
        400,
        {
            "error": {
                "message": "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 32, but got "
                "20 instead.",
                "type": "invalid_request_error",
                "param": "max_output_tokens",
                "code": "integer_below_min_value",
            }
        },
        lambda body: body["max_output_tokens"] == 32,
    ),
    "Responses: reasoning": (
        "openai_responses",
        lambda body: "reasoning" in body,
        400,
        {
            "error": {
                "message": "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
                "param": "reasoning.effort",
                "code": "unsupported_parameter",
            }
        },
        lambda body: body["temperature"] == 0.5,
    ),
    "Responses: store": (
        "openai_responses",
        lambda body: "store" in body,
        400,
        {"error": {"message": "Unknown parameter: 'store'.", "param": "store", "code": "unknown_parameter"}},
        lambda body: body["input"] != "",
    ),
    "Anthropic: temperature": (
        "anthropic",
        lambda body: "temperature" in body,
        400,
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."},
            "request_id": "req_011",
        },
        lambda body: body["output_config"] == {"effort": "low"},
    ),
    "Anthropic: effort": (
        "anthropic",
        lambda body: "output_config" in body,
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "output_config: Extra inputs are not permitted",
            },
        },
        lambda body: body["temperature"] == 0.5,
    ),
    "Gemini: thinking level": (
        "gemini",
        lambda body: "thinkingConfig" in body["generationConfig"],
        400,
        {
            "error": {
                "code": 400,
                "message": "Thinking level is not supported for this model.",
                "status": "INVALID_ARGUMENT",
            }
        },
        lambda body: body["generationConfig"] == {"maxOutputTokens": 20, "temperature": 0.5},
    ),
}


def strict(objects: Callable[[Body], bool], status: int, error: Any, stream: str) -> Answer:
    async def answer(request: FakeRequest, wire: Wire) -> None:
        await (replying(status, error) if objects(request.json) else streaming(stream))(request, wire)

    return answer


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refused_parameter_costs_one_request_in_the_life_of_a_prober(case: str, prober_of: MakeProber):
    dialect, objects, status, error, mended = REFUSALS[case]
    async with FakeOpenAI(strict(objects, status, error, STREAM[dialect])) as server:
        prober = prober_of(server.url, **hosted(dialect, max_tokens=20, parameters=HOT))
        readings = [await prober.probe() for _ in range(3)]
    assert [reading.outcome for reading in readings] == [ProbeOutcome.OK] * 3, readings[0].detail
    assert len(server.requests) == 4
    assert [objects(request.json) for request in server.requests] == [True, False, False, False]
    assert mended(server.requests[-1].json)


async def test_a_minimum_that_was_followed_is_told_to_whoever_reserves_money(prober_of: MakeProber):
    dialect, objects, status, error, _ = REFUSALS["Responses: the minimum"]
    async with FakeOpenAI(strict(objects, status, error, STREAM[dialect])) as server:
        prober = prober_of(server.url, **hosted(dialect, max_tokens=20))
        assert prober.max_tokens == 20
        await prober.probe()
    assert prober.max_tokens == 32


@pytest.mark.parametrize("dialect", [name for name in DialectName if name is not DialectName.AZURE_OPENAI])
@pytest.mark.parametrize(
    "words",
    [
        "max_tokens must be at least 1, got -186",
        "max_output_tokens: expected a value >= 100000",
        "maxOutputTokens must be at least 1000",
        "Unsupported parameter: top_k",
        "temperature must be non-negative",
        "this model's maximum context length is 10 tokens",
        "",
    ],
)
def test_what_is_not_ours_to_mend_stays_as_it_is(words: str, dialect: DialectName):
    target = ProbeTargetSettings.model_validate({"name": "t", "url": "http://x", "parameters": HOT})
    assert DIALECTS[dialect]().repaired(Parameters.of(target), words) is None


async def test_a_server_that_refuses_everything_is_asked_a_few_times_and_then_believed(prober_of: MakeProber):
    everything = "unknown: max_tokens max_completion_tokens stream_options temperature reasoning_effort min_tokens"
    async with FakeOpenAI(replying(400, {"error": {"message": everything}})) as server:
        reading = await prober_of(server.url, parameters=HOT).probe()
    assert reading.outcome is ProbeOutcome.BAD_REQUEST
    assert len(server.requests) <= 7
