"""vLLM's own bytes with the times at which they came, held against an independent, simple-minded reading of them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pinchpoint.sources.probe.dialects.openai_chat import OpenAICompletions
from pinchpoint.sources.probe.sse import SseParser
from pinchpoint.sources.probe.timing import timing
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

REAL = Path(__file__).parents[3] / "data" / "vllm-real" / "sse"
STREAMED = (
    *("chat-usage", "chat-continuous-usage", "chat-logprobs", "chat-stop", "chat-maxtok1", "chat-nousage"),
    *("completions-usage", "completions-batch2"),
)


def arrivals(name: str) -> list[tuple[float, bytes]]:
    """Seconds and bytes of each socket read, without head and chunk sizes. In these, no read splits a chunk."""
    reads = [json.loads(line) for line in (REAL / f"{name}.jsonl").read_text().splitlines()]
    bodies = []
    for read in reads:
        rest = read["data"].encode()
        if rest.startswith(b"HTTP/1.1"):
            rest = rest.partition(b"\r\n\r\n")[2]
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        bodies.append((read["t"], body))
    return bodies


@dataclass
class Naive:
    """What a person with a JSON viewer finds."""

    texts: list[tuple[float, str]] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    first_chunk_tokens: int = 1

    @classmethod
    def of(cls, name: str) -> "Naive":
        found = cls()
        for seconds, body in arrivals(name):
            for line in body.decode().split("\n"):
                if line.startswith("data: {"):
                    found._add(seconds, json.loads(line[6:]))
        return found

    def _add(self, seconds: float, chunk: dict[str, Any]) -> None:
        usage = chunk.get("usage")
        for choice in chunk["choices"]:
            text = choice.get("text") or choice.get("delta", {}).get("content")
            if text and not self.texts and usage:
                self.first_chunk_tokens = usage["completion_tokens"]
            if text:
                self.texts.append((seconds, text))
        self.usage = usage or self.usage


@pytest.mark.parametrize("name", STREAMED)
def test_real_bytes_at_their_real_times_give_the_right_numbers(name: str):
    naive, dialect = Naive.of(name), OpenAICompletions()  # which reads chat as well
    parser, transcript = SseParser(), Transcript()
    for seconds, body in arrivals(name):
        for event in parser.feed(body):
            transcript.add(dialect.interpret(event), round(seconds * 1e9))
    times = timing(Stamps(started_ns=0, ready_ns=0), transcript)

    first, last = naive.texts[0][0], naive.texts[-1][0]
    tokens = naive.usage["completion_tokens"] if naive.usage else len(naive.texts)
    gaps = tokens - naive.first_chunk_tokens
    assert times.ttft_seconds == times.ttfc_seconds == pytest.approx(first)
    assert times.tpot_seconds == (pytest.approx((last - first) / gaps) if gaps >= 8 and last > first else None)
    assert times.completion_tokens == tokens
    assert times.token_source == ("usage" if naive.usage else "chunks")
    assert transcript.characters == sum(len(text) for _, text in naive.texts)
    assert transcript.ended
    assert (transcript.error, transcript.malformed) == (None, 0)
    if naive.usage:
        assert transcript.usage is not None
        assert transcript.usage.prompt_tokens == naive.usage["prompt_tokens"]


def test_the_recordings_hold_what_they_are_called():
    assert Naive.of("chat-continuous-usage").first_chunk_tokens == 1
    assert Naive.of("completions-batch2").texts[0][0] == Naive.of("completions-batch2").texts[-1][0]  # came in one read
    assert Naive.of("chat-nousage").usage is None
    assert len(Naive.of("chat-usage").texts) > 30
