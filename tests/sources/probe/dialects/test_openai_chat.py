"""The OpenAI chat dialect: what events mean, and which parameter a refusal takes out."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import Placement
from pinchpoint.sources.probe import ParameterSettings, ProbeTargetSettings
from pinchpoint.sources.probe.dialects import Parameters
from pinchpoint.sources.probe.dialects.openai_chat import OpenAIChat
from pinchpoint.sources.probe.event import StreamEvent, TextKind, Usage
from pinchpoint.sources.probe.sse import SseEvent

SILENT = StreamEvent()
CHAT = OpenAIChat()


def understand(data: object, name: str = "message") -> StreamEvent:
    return CHAT.interpret(SseEvent(data if isinstance(data, str) else json.dumps(data), name))


def chunk(**delta: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


@pytest.mark.parametrize(
    ("delta", "kind"),
    [
        ({"content": "hi"}, TextKind.CONTENT),
        ({"reasoning": "hm"}, TextKind.REASONING),
        ({"reasoning_content": "hm"}, TextKind.REASONING),
        ({"tool_calls": [{"index": 0, "function": {"name": "f"}}]}, TextKind.TOOL),
        ({"refusal": "no"}, TextKind.REFUSAL),
        ({"content": "hi", "reasoning": "hm"}, TextKind.CONTENT),
        ({"content": "", "reasoning": "hm"}, TextKind.REASONING),
    ],
)
def test_every_kind_of_generated_text_is_text(delta: dict[str, object], kind: TextKind):
    assert understand(chunk(**delta)).text is kind


@pytest.mark.parametrize(
    "delta",
    [
        {"role": "assistant"},
        {"role": "assistant", "content": ""},
        {"content": None},
        {"tool_calls": []},
        {"obfuscation": "x"},
    ],
)
def test_a_chunk_without_text_is_none(delta: dict[str, object]):
    event = understand(chunk(**delta))
    assert event.text is None
    assert not event.progress


@pytest.mark.parametrize("data", ["", "   ", ": keepalive"])
def test_a_keepalive_in_a_data_line_says_nothing(data: str):
    assert understand(data) == SILENT


def test_a_ping_event_says_nothing():
    assert understand({"type": "ping"}, "ping") == SILENT


@pytest.mark.parametrize(
    "data", [{"choices": [], "prompt_filter_results": []}, {"choices": None}, {"choices": [{"index": 0}]}, {}]
)
def test_missing_choices_and_deltas_are_guarded(data: dict[str, object]):
    event = understand(data)
    assert (event.text, event.malformed, event.error) == (None, False, None)


def test_usage_is_read_on_any_chunk_and_the_chunk_still_counts():
    event = understand(chunk(content="x") | {"usage": {"prompt_tokens": 5, "completion_tokens": 3}})
    assert event.text is TextKind.CONTENT
    assert event.usage == Usage(prompt_tokens=5, completion_tokens=3)


def test_details_of_usage_are_read():
    details = {
        "prompt_tokens": 50,
        "completion_tokens": 40,
        "completion_tokens_details": {"reasoning_tokens": 30},
        "prompt_tokens_details": {"cached_tokens": 16},
    }
    assert understand({"choices": [], "usage": details}).usage == Usage(
        prompt_tokens=50, completion_tokens=40, reasoning_tokens=30, cached_tokens=16
    )


@pytest.mark.parametrize(
    "usage", [None, {}, {"completion_tokens": None}, {"completion_tokens": True}, "7", {"completion_tokens": -1}]
)
def test_an_unusable_usage_is_absent(usage: object):
    assert understand({"choices": [], "usage": usage}).usage is None


@pytest.mark.parametrize("nothing", [None, "", {}, []])
def test_an_empty_error_is_no_error(nothing: object):
    assert understand(chunk(content="x") | {"error": nothing}).error is None


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ({"error": {"message": "quota exceeded"}}, "message"),
        ({"error": "Unauthorized"}, "message"),
        ({"message": "broken"}, "error"),
        ("plain text", "error"),
        ({"object": "error", "message": "flat"}, "message"),
        ({"type": "error", "error": {"type": "overloaded_error"}}, "error"),
        ([{"error": {"code": 429}}], "message"),
        ({"choices": [{"error": {"code": 502}, "delta": {}}]}, "message"),
    ],
)
def test_an_error_in_the_stream_is_seen_in_every_shape(data: object, name: str):
    assert understand(data, name).error


@pytest.mark.parametrize("data", ["{", "nonsense", "7", "[]", "[" * 5000])
def test_what_is_no_object_is_malformed(data: str):
    assert understand(data).malformed


def test_done_ends():
    assert understand(" [DONE] ").done


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda v: st.lists(v, max_size=3) | st.dictionaries(st.sampled_from(["choices", "delta", "content", "usage", "error", "finish_reason", "completion_tokens"]), v, max_size=4), max_leaves=12))  # fmt: skip  # noqa: E501
def test_any_json_is_understood(value: object):
    assert isinstance(understand(json.dumps(value)), StreamEvent)


LOCAL = Parameters.of(ProbeTargetSettings(name="t", url="http://x"))


def test_a_local_request_is_as_long_as_it_says_and_counts_its_tokens():
    body = CHAT.body("m", "hello", LOCAL)
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert body["stream"] is True
    assert body["ignore_eos"] is True
    assert body["min_tokens"] == body["max_tokens"] == 32
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}


def test_a_hosted_request_has_only_what_strict_servers_accept():
    target = ProbeTargetSettings(name="t", url="https://x", placement=Placement.HOSTED, model="m")
    body = CHAT.body("m", "hello", Parameters.of(target))
    assert set(body) == {"model", "messages", "stream", "max_tokens", "stream_options"}
    assert body["stream_options"] == {"include_usage": True}


def test_the_operator_has_the_last_word_on_parameters():
    profile = ParameterSettings(
        token_field="max_completion_tokens",
        ignore_eos=False,
        temperature=0,
        reasoning_effort="low",
        extra_body={"top_k": 1},
    )
    body = CHAT.body("m", "p", Parameters.of(ProbeTargetSettings(name="t", url="http://x", parameters=profile)))
    assert "max_tokens" not in body
    assert "ignore_eos" not in body
    assert (body["max_completion_tokens"], body["temperature"], body["reasoning_effort"], body["top_k"]) == (
        32,
        0,
        "low",
        1,
    )


def test_each_refused_parameter_is_taken_out():
    openai = (
        "unsupported parameter: 'max_tokens' is not supported with this model. use 'max_completion_tokens' instead."
    )
    strict = '{"type": "extra_forbidden", "loc": ["body", "%s"]}'
    hot = replace(LOCAL, temperature=0.0)
    assert CHAT.repaired(LOCAL, openai) == replace(LOCAL, token_field="max_completion_tokens", token_field_tried=True)
    assert CHAT.repaired(LOCAL, strict % "ignore_eos") == replace(LOCAL, ignore_eos=False)
    assert CHAT.repaired(LOCAL, strict % "min_tokens") == replace(LOCAL, ignore_eos=False)
    assert CHAT.repaired(LOCAL, strict % "stream_options") == replace(LOCAL, stream_usage=False)
    assert CHAT.repaired(LOCAL, strict % "stream_options.continuous_usage_stats") == replace(
        LOCAL, continuous_usage=False
    )
    assert CHAT.repaired(hot, "unsupported value: 'temperature' does not support 0") == LOCAL
    strict_about_it = replace(LOCAL, token_field="max_completion_tokens")
    assert CHAT.repaired(strict_about_it, strict % "max_completion_tokens") == replace(LOCAL, token_field_tried=True)


@pytest.mark.parametrize(
    "refusal", ["max_tokens must be at least 1", "unsupported parameter: top_k", "", "temperature must be non-negative"]
)
def test_a_refusal_that_names_none_of_ours_is_not_repaired(refusal: str):
    assert CHAT.repaired(LOCAL, refusal) is None


@given(st.lists(st.sampled_from(["max_tokens", "max_completion_tokens", "stream_options", "temperature", "ignore_eos"]), min_size=12, max_size=30))  # fmt: skip  # noqa: E501
def test_repairs_come_to_an_end(names: list[str]):
    parameters, repairs = replace(LOCAL, temperature=1.0), 0
    for name in names:
        better = CHAT.repaired(parameters, f"unsupported parameter {name}")
        repairs += better is not None
        parameters = better or parameters
    assert repairs <= 5
