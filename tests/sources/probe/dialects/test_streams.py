"""Every dialect's streams, as providers write them: outcome, TTFT, TTFC, TPOT, tokens, text and reasoning."""

from typing import Any

import pytest

from pinchpoint.snapshot import ProbeReading
from tests.sources.probe.dialects.streams import STREAMS, blocks_of, dialect_of, played, truths_ms

# prompt, completion and cached tokens; milliseconds per token; how the model's reasoning was shown
GOOD: dict[str, tuple[int | None, int, int | None, float | None, str | None]] = {
    "openai_chat/openai": (100, 12, 64, 10, None),
    "openai_chat/openai_hidden_reasoning": (100, 76, None, 10, "hidden"),
    "openai_chat/vllm_continuous": (100, 12, None, 10, None),
    "openai_chat/vllm_reasoning": (100, 15, None, 10, "streamed"),
    "openai_chat/deepseek_reasoning": (100, 15, 64, 10, "streamed"),
    "openai_chat/openrouter": (100, 12, 64, 10, None),
    "openai_chat/openrouter_encrypted": (None, 12, None, 10, "hidden"),  # no usage: chunks are counted
    "openai_chat/moonshot": (100, 12, 64, 10, None),
    "openai_chat/groq": (100, 12, None, 10, None),
    "openai_chat/mistral": (100, 12, None, 10, None),
    "openai_chat/mistral_thinking": (100, 15, None, 130 / 14, "streamed"),
    "openai_chat/gemini_compatible": (100, 12, None, 30 / 9, None),
    "openai_chat/ollama": (None, 12, None, 10, None),
    "openai_chat/azure": (100, 12, None, 10, None),
    "openai_responses/text": (100, 12, 64, 10, None),
    "openai_responses/hidden_reasoning": (100, 76, 0, 10, "hidden"),
    "openai_responses/reasoning_summary": (100, 76, 0, 10, "summary"),
    "openai_responses/reasoning_text": (100, 15, 0, 160 / 14, "streamed"),
    "openai_responses/incomplete": (100, 12, 0, 10, None),
    "anthropic/text": (100, 12, 64, 10, None),
    "anthropic/thinking": (100, 76, 0, 10, "summary"),
    "anthropic/thinking_omitted": (100, 76, 0, 10, "hidden"),
    "anthropic/thinking_uncounted": (100, 76, 0, None, "hidden"),  # how many of the 76 were text can't be told
    "gemini/text": (100, 12, 64, 30 / 9, None),
    "gemini/hidden_reasoning": (100, 76, None, 30 / 9, "hidden"),
    "gemini/thoughts": (100, 76, None, 30 / 9, "summary"),
}
BAD: dict[str, tuple[str, str]] = {
    "openai_chat/azure_filtered": ("content_filter", "content_filter"),
    "openai_chat/length_without_text": ("empty_output", "reasoning_budget: 400 of 400"),
    "openai_chat/tool_only": ("empty_output", "tool_only"),
    "openai_chat/error_in_stream": ("quota", "quota exceeded"),
    "openai_chat/engine_dead": ("engine_dead", "EngineCore"),
    "openai_chat/truncated": ("truncated", "12 chunks of text"),
    "openai_responses/content_filter": ("content_filter", "content_filter"),
    "openai_responses/reasoning_budget": ("empty_output", "reasoning_budget: 32 of 32"),
    "openai_responses/failed": ("stream_error", "failed to generate"),
    "openai_responses/failed_quota": ("quota", "exceeded your current quota"),
    "openai_responses/error": ("rate_limited", "Please try again in 20s"),
    "openai_responses/error_nested": ("overloaded", "overloaded"),
    "openai_responses/refusal": ("empty_output", "refusal"),
    "openai_responses/truncated": ("truncated", "12 chunks of text"),
    "anthropic/tool_only": ("empty_output", "tool_only"),
    "anthropic/overloaded": ("overloaded", "Overloaded"),
    "anthropic/filtered": ("content_filter", "content_filter"),
    "anthropic/thinking_budget": ("empty_output", "reasoning_budget: 32 of 32"),
    "anthropic/truncated": ("truncated", "12 chunks of text"),
    "gemini/blocked": ("content_filter", "content_filter"),
    "gemini/safety": ("content_filter", "content_filter"),
    "gemini/reasoning_budget": ("empty_output", "reasoning_budget: 32 of 32"),
    "gemini/error": ("overloaded", "overloaded"),
    "gemini/error_list": ("rate_limited", "exhausted"),
    "gemini/tool_only": ("empty_output", "tool_only"),
    "gemini/truncated": ("truncated", "2 chunks of text"),
}
TEXT = "One, two, thrée, four, five, six,"


def read(stream: str) -> ProbeReading:
    return played(dialect_of(stream), blocks_of(stream))


def test_every_stream_has_its_row():
    files = {f"{path.parent.name}/{path.stem}" for path in STREAMS.glob("*/*.sse")}
    assert files == GOOD.keys() | BAD.keys()


@pytest.mark.parametrize("stream", GOOD)
def test_a_good_stream_gives_its_tokens_and_its_text(stream: str):
    reading = read(stream)
    assert reading.outcome == "ok", reading.detail
    prompt, completion, cached, _, reasoning = GOOD[stream]
    assert (reading.prompt_tokens, reading.completion_tokens, reading.cached_tokens) == (prompt, completion, cached)
    assert reading.token_source == ("chunks" if prompt is None else "usage")
    assert reading.characters == len(TEXT) + (len("We count up.") if reasoning == "streamed" else 0)
    assert reading.reasoning == reasoning


@pytest.mark.parametrize("stream", GOOD)
def test_a_good_stream_gives_its_times(stream: str):
    reading, truths = read(stream), truths_ms(stream)
    assert reading.ttft_seconds == pytest.approx(truths[0] / 1000)
    assert reading.ttfc_seconds == pytest.approx(truths[2 if len(truths) == 3 else 0] / 1000)
    tpot = GOOD[stream][3]
    assert reading.tpot_seconds == (None if tpot is None else pytest.approx(tpot / 1000))


@pytest.mark.parametrize("stream", BAD)
def test_a_bad_stream_gives_its_reason(stream: str):
    reading = read(stream)
    assert (reading.outcome, reading.tpot_seconds) == (BAD[stream][0], None)
    assert BAD[stream][1] in reading.detail
    assert reading.remedy


@pytest.mark.parametrize("stream", [stream for stream in BAD if truths_ms(stream)])
def test_a_first_token_that_was_seen_keeps_its_time(stream: str):
    assert read(stream).ttft_seconds == pytest.approx(truths_ms(stream)[0] / 1000)


@pytest.mark.parametrize("stream", [stream for stream in BAD if not truths_ms(stream)])
def test_without_text_there_is_no_first_token(stream: str):
    reading = read(stream)
    assert (reading.ttft_seconds, reading.ttfc_seconds) == (None, None)


def test_reasoning_that_is_shown_ends_the_wait_for_the_first_token_and_not_that_for_content():
    for stream in ("openai_chat/vllm_reasoning", "openai_responses/reasoning_summary", "anthropic/thinking"):
        reading: Any = read(stream)
        assert reading.ttfc_seconds > reading.ttft_seconds + 0.02


def test_an_answer_that_got_no_further_than_its_reasoning_is_an_answer_without_content():
    thought = [block for block in blocks_of("openai_responses/reasoning_summary") if b"output_text" not in block]
    reading = played(dialect_of("openai_responses/x"), thought)
    assert (reading.outcome, reading.reasoning) == ("ok", "summary")
    assert reading.ttft_seconds is not None
    assert (reading.ttfc_seconds, reading.tpot_seconds, reading.characters) == (None, None, None)


def test_text_beside_a_thought_in_one_chunk_is_content_and_counts_alone():
    both = b'data: {"candidates": [{"content": {"parts": [{"text": "hm, hm", "thought": true}, {"text": "One"}]}, '
    reading = played(dialect_of("gemini/x"), [both + b'"finishReason": "STOP"}]}\n\n'])
    assert (reading.outcome, reading.characters) == ("ok", len("One"))
    assert reading.ttfc_seconds == reading.ttft_seconds
