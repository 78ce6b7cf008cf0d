"""One stream, written in all the ways that servers and proxies write one: it says the same in each dialect.

Each way has broken a benchmark client that is in use. What a server may not do is here too: the stream then fails, and
is never quietly shorter.
"""

import json
import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.snapshot import ProbeReading
from tests.sources.probe.dialects.streams import PAUSE, blocks_of, dialect_of, played

STREAMS = (
    "openai_chat/openai",
    "openai_chat/azure",
    "openai_responses/text",
    "anthropic/text",
    "gemini/text",
    "openai_chat/deepseek_reasoning",
    "anthropic/thinking",
)
Blocks = list[bytes]


def plain(stream: str) -> Blocks:
    return [block for block in blocks_of(stream) if not block.startswith(PAUSE)]


def data_of(block: bytes) -> dict[str, object] | None:
    found = re.search(rb"data: (\{.*\})", block)
    return json.loads(found[1]) if found else None


def each_chunk(blocks: Blocks, change: Callable[[dict[str, object]], object]) -> Blocks:
    """The stream with each JSON object changed; its event names stay."""
    changed = []
    for block in blocks:
        chunk = data_of(block)
        names = b"".join(line + b"\n" for line in block.split(b"\n") if line.startswith(b"event:"))
        changed.append(block if chunk is None else names + b"data: " + json.dumps(change(chunk)).encode() + b"\n\n")
    return changed


def between(*inserted: bytes) -> Callable[[Blocks], Blocks]:
    return lambda blocks: [piece for block in blocks for piece in (*inserted, block)]


def over_many_lines(blocks: Blocks) -> Blocks:
    """JSON printed over several data lines, as the standard allows."""
    pretty = []
    for block in blocks:
        chunk = data_of(block)
        names = b"".join(line + b"\n" for line in block.split(b"\n") if line.startswith(b"event:"))
        lines = json.dumps(chunk, indent=1, ensure_ascii=False).encode().split(b"\n")
        pretty.append(block if chunk is None else names + b"".join(b"data: " + line + b"\n" for line in lines) + b"\n")
    return pretty


def padded(blocks: Blocks) -> Blocks:
    """Every third chunk is a line of a megabyte."""
    noise = iter([{"obfuscation": "x" * 1_000_000}, {}, {}] * len(blocks))
    return each_chunk(blocks, lambda chunk: chunk | next(noise))


ODD: dict[str, Callable[[Blocks], Blocks]] = {
    "no space after data:": lambda blocks: [block.replace(b"data: ", b"data:") for block in blocks],
    "CRLF": lambda blocks: [block.replace(b"\n", b"\r\n") for block in blocks],
    "lone CR": lambda blocks: [block.replace(b"\n", b"\r") for block in blocks],
    "byte order mark": lambda blocks: [b"\xef\xbb\xbf" + blocks[0], *blocks[1:]],
    "data over many lines": over_many_lines,
    "lines of a megabyte": padded,
    "escaped instead of UTF-8": lambda blocks: each_chunk(blocks, lambda chunk: chunk),
    "comments of every length": between(*(b":" + b"x" * length + b"\n\n" for length in range(9))),
    "OpenRouter's comments": between(b": OPENROUTER PROCESSING\n\n"),
    "keepalive in a data line": between(b"data: : keepalive\n\n"),
    "empty data": between(b"data: \n\n", b"data:\n\n"),
    "ping events": between(b'event: ping\ndata: {"type": "ping"}\n\n', b"event: ping\ndata: 12:00:01\n\n"),
    "ids and retries": lambda blocks: [b"id: 7\nretry: 3000\n" + block for block in blocks],
    "error: null": lambda blocks: each_chunk(blocks, lambda chunk: chunk | {"error": None}),
    "error: {}": lambda blocks: each_chunk(blocks, lambda chunk: chunk | {"error": {}}),
    "an event nobody knows": between(b'event: novelty\ndata: {"type": "novelty", "delta": {}}\n\n'),
    "a list around each object": lambda blocks: each_chunk(blocks, lambda chunk: [chunk]),
    "no blank line at the end": lambda blocks: [*blocks[:-1], blocks[-1].rstrip(b"\n")],
    "[DONE] though this API has none": lambda blocks: [*blocks, b"data: [DONE]\n\n"],
    "no [DONE]": lambda blocks: [block for block in blocks if b"[DONE]" not in block],
}


def what_it_says(reading: ProbeReading) -> tuple[object, ...]:
    return (
        reading.outcome,
        reading.detail,
        reading.prompt_tokens,
        reading.completion_tokens,
        reading.cached_tokens,
        reading.characters,
        reading.reasoning,
        reading.token_source,
    )


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("way", ODD)
def test_a_stream_says_the_same_in_whatever_way_it_is_written(way: str, stream: str):
    blocks = plain(stream)
    odd = ODD[way](blocks)
    assert odd != blocks or way in ("no [DONE]", "escaped instead of UTF-8")
    expected, reading = played(dialect_of(stream), blocks), played(dialect_of(stream), odd)
    assert expected.outcome == "ok"
    assert what_it_says(reading) == what_it_says(expected)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_a_stream_cut_at_every_byte_says_the_same(stream: str, line_end: bytes):
    blocks = plain(stream)
    raw = b"".join(blocks).replace(b"\n", line_end)
    cut = [raw[i : i + 1] for i in range(len(raw))]
    assert what_it_says(played(dialect_of(stream), cut)) == what_it_says(played(dialect_of(stream), blocks))


@pytest.mark.parametrize("stream", STREAMS)
@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 6000), max_size=12))
def test_a_stream_cut_anywhere_says_the_same(stream: str, cuts: list[int]):
    blocks = plain(stream)
    raw = b"".join(blocks)
    pieces = [raw[start:stop] for start, stop in pairwise([0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)])]
    assert what_it_says(played(dialect_of(stream), pieces)) == what_it_says(played(dialect_of(stream), blocks))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize(
    "error",
    [
        b'data: {"error": {"message": "boom", "code": 500}}\n\n',
        b'data: {"error": "boom"}\n\n',
        b'event: error\ndata: {"message": "boom"}\n\n',
        b'event: error\ndata: {"type": "error", "error": {"type": "api_error", "message": "boom"}}\n\n',
        b"event: error\ndata: boom\n\n",
        b'data: {"object": "error", "message": "boom", "type": "InternalServerError", "code": 500}\n\n',
        b'data: [{"error": {"message": "boom"}}]\n\n',
    ],
)
def test_an_error_in_the_stream_fails_the_probe_in_every_shape_and_dialect(error: bytes, stream: str):
    blocks = plain(stream)
    reading = played(dialect_of(stream), [*blocks[:5], error, *blocks[5:]])
    assert (reading.outcome, reading.detail) == ("stream_error", "boom")


@pytest.mark.parametrize("stream", STREAMS)
def test_data_that_is_no_json_is_counted_and_never_dropped(stream: str):
    blocks = plain(stream)
    broken = [*blocks[:-3], blocks[-3][: len(blocks[-3]) // 2] + b"\n\n", *blocks[-2:]]
    reading = played(dialect_of(stream), broken)
    assert (reading.outcome, reading.detail) == ("invalid_response", "1 events in the stream are not JSON objects")


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_that_ends_without_a_sign_of_its_end_is_truncated(stream: str):
    blocks = plain(stream)
    half = played(dialect_of(stream), blocks[: len(blocks) // 2])
    assert half.outcome == "truncated"
    assert half.tpot_seconds is None


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_without_its_counts_says_that_it_counted_chunks(stream: str):
    uncounted = [re.sub(rb'"(usage|usageMetadata)":', rb'"else":', block) for block in plain(stream)]
    reading = played(dialect_of(stream), uncounted)
    assert (reading.outcome, reading.token_source, reading.prompt_tokens) == ("ok", "chunks", None)


@pytest.mark.parametrize("stream", ["openai_responses/text", "anthropic/text"])
def test_a_typed_event_is_known_by_its_data_or_by_its_name(stream: str):
    blocks = plain(stream)
    unnamed = [re.sub(rb"event: .*\n", b"", block) for block in blocks]
    untyped = each_chunk(blocks, lambda chunk: {key: value for key, value in chunk.items() if key != "type"})
    expected = what_it_says(played(dialect_of(stream), blocks))
    assert what_it_says(played(dialect_of(stream), unnamed)) == expected
    assert what_it_says(played(dialect_of(stream), untyped)) == expected


@pytest.mark.parametrize(
    ("stream", "empty"),
    [
        ("openai_chat/openai", {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
        ("openai_chat/openai", {"choices": [{"index": 0, "delta": {"content": None, "reasoning_content": ""}}]}),
        ("openai_chat/openai", {"choices": [{"index": 0, "delta": {"content": []}}]}),
        ("openai_chat/openai", {"choices": [{"index": 0}]}),
        ("openai_chat/openai", {"choices": []}),
        ("openai_responses/text", {"type": "response.output_text.delta", "delta": ""}),
        ("openai_responses/text", {"type": "response.reasoning_summary_text.delta", "delta": ""}),
        ("anthropic/text", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}}),
        ("anthropic/text", {"type": "content_block_delta", "delta": {"type": "signature_delta", "signature": "Eq"}}),
        ("anthropic/text", {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}),
        ("gemini/text", {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}}]}),
        ("gemini/text", {"candidates": [{"content": {"role": "model"}}]}),
        ("gemini/text", {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "Ej"}]}}]}),
        ("gemini/text", {"candidates": [{}]}),
    ],
)
def test_a_chunk_without_text_does_not_end_the_wait_for_the_first_token(stream: str, empty: dict[str, object]):
    blocks = plain(stream)
    late = [b"data: " + json.dumps(empty).encode() + b"\n\n"] * 10
    expected, reading = played(dialect_of(stream), blocks), played(dialect_of(stream), late + blocks)
    assert expected.ttft_seconds is not None
    assert reading.ttft_seconds == pytest.approx(expected.ttft_seconds + 0.1)


KEYS = (
    *("type", "delta", "text", "thinking", "response", "usage", "output_tokens", "error", "item", "message", "choices"),
    *(
        "content_block",
        "stop_reason",
        "candidates",
        "content",
        "parts",
        "finishReason",
        "usageMetadata",
        "promptFeedback",
    ),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda value: st.lists(value, max_size=3) | st.dictionaries(st.sampled_from(KEYS), value, max_size=4),
    max_leaves=15,
)


@pytest.mark.parametrize("stream", ["openai_chat/x", "openai_responses/x", "anthropic/x", "gemini/x"])
@given(value=JSON, name=st.sampled_from(["message", "error", "content_block_delta", "response.failed"]))
@settings(deadline=None)
def test_any_json_is_understood(stream: str, value: object, name: str):
    block = f"event: {name}\ndata: {json.dumps(value)}\n\n".encode()
    assert played(dialect_of(stream), [block]).outcome != "internal"
