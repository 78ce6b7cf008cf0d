"""Streams that are odd but right, on a real socket; and vLLM's own bytes."""

import asyncio
import gzip
import json
import time
from pathlib import Path

import pytest

from pinchpoint.snapshot import ProbeOutcome, ProbeReading
from pinchpoint.sources.probe.lateness import LoopWatch
from tests.fakes.openai_server import (
    SSE_HEAD,
    FakeOpenAI,
    FakeRequest,
    Step,
    Wire,
    close,
    delta,
    end,
    hang,
    head,
    say,
    scripted,
    streaming,
    usage_chunk,
    wait,
)
from tests.sources.probe.conftest import MakeProber

REAL = Path(__file__).parents[2] / "data" / "vllm-real" / "sse"


async def probed(prober_of: MakeProber, *steps: Step, **target: object) -> ProbeReading:
    async with FakeOpenAI(scripted(head, *steps)) as server:
        return await prober_of(server.url, **target).probe()


async def test_a_good_probe_says_everything(prober_of: MakeProber):
    async with FakeOpenAI(streaming(tokens=20)) as server:
        reading = await prober_of(server.url, engine="chat").probe()
    assert (reading.target, reading.engine, reading.at, reading.outcome) == ("t", "chat", 7.0, ProbeOutcome.OK)
    assert (reading.detail, reading.remedy) == ("", "")
    assert (reading.http_status, reading.connection, reading.token_source) == (200, "new", "usage")
    assert (reading.prompt_tokens, reading.completion_tokens, reading.characters) == (100, 20, 70)
    assert set(reading.phases) == {"connect", "send", "headers", "first_token", "first_content", "generation"}
    assert reading.ttft_seconds is not None
    assert reading.tpot_seconds is not None
    assert reading.duration_seconds is not None
    assert reading.duration_seconds >= reading.ttft_seconds + 19 * reading.tpot_seconds - 1e-6


async def test_the_request_is_streamed_uncompressed_and_begins_with_a_new_nonce(prober_of: MakeProber):
    async with FakeOpenAI(streaming()) as server:
        prober = prober_of(server.url)
        await prober.probe()
        await prober.probe()
    first, second = server.requests
    assert first.headers["accept-encoding"] == "identity"
    assert first.json["stream"] is True
    nonces = [request.json["messages"][0]["content"].split()[0] for request in (first, second)]
    assert nonces[0] != nonces[1]
    assert all(len(nonce) == 16 for nonce in nonces)


async def test_a_second_probe_reuses_the_connection_and_has_no_connect_phase(prober_of: MakeProber):
    async with FakeOpenAI(streaming()) as server:
        prober = prober_of(server.url)
        readings = [await prober.probe(), await prober.probe()]
    assert [reading.connection for reading in readings] == ["new", "reused"]
    assert "connect" not in readings[1].phases


async def test_a_role_chunk_keepalives_and_empty_text_do_not_stop_the_wait_for_the_first_token(prober_of: MakeProber):
    reading = await probed(
        prober_of,
        say(delta(role="assistant"), delta(content="")),
        lambda wire: wire.chunk(b": ping\n\ndata: : keepalive\n\nevent: ping\ndata: {}\n\n"),
        wait(0.05),
        say(delta(content="a")),
        say(delta(finish="stop"), "[DONE]"),
        end,
    )
    assert reading.outcome is ProbeOutcome.OK
    assert reading.ttft_seconds is not None
    assert reading.ttft_seconds >= 0.05


@pytest.mark.parametrize("line_end", ["\r\n", "\n", "\r"])
async def test_a_stream_cut_at_every_byte_is_read_right(line_end: str, prober_of: MakeProber):
    events = [delta(content="é✓"), delta(content="\U0001f600", finish="stop"), usage_chunk(3), "[DONE]"]
    texts = [e if isinstance(e, str) else json.dumps(e, ensure_ascii=False) for e in events]
    raw = "".join(f": c{line_end}data:{text}{line_end}{line_end}" for text in texts).encode()

    async def byte_by_byte(wire: Wire) -> None:
        for i in range(len(raw)):
            await wire.chunk(raw[i : i + 1])

    reading = await probed(prober_of, byte_by_byte, end)
    assert reading.outcome is ProbeOutcome.OK
    assert (reading.characters, reading.completion_tokens) == (3, 3)


@pytest.mark.parametrize(
    "events",
    [
        [delta(content="a", finish="stop")],
        [delta(content="a"), "[DONE]"],
        [delta(content="a") | {"error": None}, delta(finish="stop"), "[DONE]"],
        [{"choices": [], "prompt_filter_results": []}, delta(content="a"), {"choices": [{"finish_reason": "stop"}]}],
        [delta(content="a", finish="stop", usage={"completion_tokens": 1})],
    ],
    ids=["finish only", "done only", "null error", "azure", "usage in the last chunk"],
)
async def test_either_sign_of_the_end_is_enough(events: list[object], prober_of: MakeProber):
    reading = await probed(prober_of, *map(say, events), end)
    assert reading.outcome is ProbeOutcome.OK


async def test_a_server_that_never_closes_after_the_end_is_not_waited_for(prober_of: MakeProber):
    async with asyncio.timeout(3):  # the drain is one second
        reading = await probed(prober_of, say(delta(content="a", finish="stop"), "[DONE]"), hang)
    assert reading.outcome is ProbeOutcome.OK
    assert reading.duration_seconds is not None
    assert reading.duration_seconds < 0.7


async def test_a_connection_that_breaks_after_the_end_is_no_failure(prober_of: MakeProber):
    reading = await probed(prober_of, say(delta(content="a", finish="stop")), close)
    assert reading.outcome is ProbeOutcome.OK


async def test_text_that_goes_on_longer_than_the_idle_deadline_is_not_stalled(prober_of: MakeProber):
    steps = [step for _ in range(6) for step in (say(delta(content="a")), wait(0.1))]
    deadlines = {"connect": 5, "first_token": 5, "idle": 0.4, "overall": 15}
    reading = await probed(prober_of, *steps, say(delta(finish="stop"), "[DONE]"), end, deadlines=deadlines)
    assert reading.outcome is ProbeOutcome.OK


async def test_a_compressed_stream_is_read_and_reported(prober_of: MakeProber):
    text = "".join(f"data: {e}\n\n" for e in (json.dumps(delta(content="a", finish="stop")), "[DONE]"))

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        await wire.send(SSE_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n"))
        await wire.chunk(gzip.compress(text.encode()))
        await wire.end()

    async with FakeOpenAI(answer) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.OK
    assert reading.detail.startswith("compressed (gzip)")


async def test_a_buffering_proxy_is_flagged(prober_of: MakeProber):
    lump = [delta(content="a")] * 32
    reading = await probed(prober_of, wait(0.1), say(*lump, delta(finish="length"), usage_chunk(32), "[DONE]"), end)
    assert reading.outcome is ProbeOutcome.NOT_STREAMED
    assert reading.buffered
    assert reading.ttft_seconds is None


async def test_a_late_event_loop_spoils_the_latencies_but_not_the_probe(prober_of: MakeProber):
    async def hog() -> None:
        while True:
            await asyncio.sleep(0.001)
            time.sleep(0.06)  # noqa: ASYNC251 - what a loop must not suffer

    async with FakeOpenAI(streaming(tokens=12, ttft=0.1, tpot=0.02)) as server:
        hogging = asyncio.create_task(hog())
        reading = await prober_of(server.url, watch=LoopWatch()).probe()
        hogging.cancel()
    assert reading.outcome is ProbeOutcome.OK
    assert (reading.ttft_seconds, reading.tpot_seconds) == (None, None)
    assert reading.discarded == ("ttft", "ttfc", "tpot")
    assert "event loop was late, so no TTFT and no TTFC and no TPOT was taken" in reading.detail


@pytest.mark.parametrize(
    ("name", "completion_tokens", "token_source"),
    [
        ("chat-usage", 40, "usage"),
        ("chat-continuous-usage", 20, "usage"),
        ("chat-logprobs", 6, "usage"),
        ("chat-stop", 1, "usage"),
        ("chat-maxtok1", 1, "usage"),
        ("chat-nousage", 19, "chunks"),  # one of its 20 tokens had no text of its own
    ],
)
async def test_real_vllm_bytes_give_the_right_reading(
    name: str, completion_tokens: int, token_source: str, prober_of: MakeProber
):
    recorded = [json.loads(line) for line in (REAL / f"{name}.jsonl").read_text().splitlines()]

    async def replay(_request: FakeRequest, wire: Wire) -> None:
        for before, arrival in zip([recorded[0], *recorded], recorded, strict=False):
            await asyncio.sleep(arrival["t"] - before["t"])
            await wire.send(arrival["data"].encode())
        wire.close()

    async with FakeOpenAI(replay) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert (reading.completion_tokens, reading.token_source) == (completion_tokens, token_source)


async def test_a_real_answer_that_is_not_streamed_is_called_so(prober_of: MakeProber):
    raw = (REAL / "chat-nonstream.raw").read_bytes()

    async def replay(_request: FakeRequest, wire: Wire) -> None:
        await wire.send(raw)
        wire.close()

    async with FakeOpenAI(replay) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.NOT_STREAMED
