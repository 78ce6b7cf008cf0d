"""What a reading says of a failure beside its reason, and the limits on what a server can make us read."""

import asyncio
import json

import pytest

from pinchpoint.snapshot import Placement, ProbeOutcome, ProbeTotals
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
    replying,
    say,
    scripted,
    usage_chunk,
    wait,
)
from tests.sources.probe.conftest import QUICK, MakeProber


@pytest.mark.parametrize(
    ("events", "cause"),
    [
        (
            [delta(finish="length"), usage_chunk(32, completion_tokens_details={"reasoning_tokens": 32})],
            "reasoning_budget: 32 of 32",
        ),
        ([delta(tool_calls=[{"index": 0}]), delta(finish="tool_calls")], "tool_only"),
        ([delta(refusal="I can't"), delta(finish="stop")], "refusal"),
    ],
)
async def test_an_answer_without_text_says_where_the_text_went(
    events: list[dict[str, object]], cause: str, prober_of: MakeProber
):
    async with FakeOpenAI(scripted(head, say(*events, "[DONE]"), end)) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.EMPTY_OUTPUT
    assert reading.detail.startswith(cause)


async def test_streamed_reasoning_that_uses_up_the_tokens_is_no_failure_but_has_no_ttfc(prober_of: MakeProber):
    thinking = [say(delta(reasoning="hm "))] * 9
    steps = [step for think in thinking for step in (think, wait(0.002))]
    answer = scripted(head, *steps, say(delta(finish="length"), usage_chunk(9), "[DONE]"), end)
    async with FakeOpenAI(answer) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.OK
    assert reading.ttft_seconds is not None
    assert reading.ttfc_seconds is None


async def test_a_failure_after_the_first_token_keeps_the_ttft_that_was_seen(prober_of: MakeProber):
    async with FakeOpenAI(scripted(head, say(delta(content="a")), close)) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.TRUNCATED
    assert reading.ttft_seconds is not None
    assert "1 chunks of text had come" in reading.detail


@pytest.mark.parametrize(
    ("steps", "phase"),
    [([hang], "headers"), ([head, hang], "first_token"), ([head, say(delta(content="a")), hang], "generation")],
)
async def test_a_probe_that_waits_in_vain_tells_what_it_waited_for_and_no_histogram_counts_the_wait(
    steps: list[Step], phase: str, prober_of: MakeProber
):
    async with FakeOpenAI(scripted(*steps)) as server:
        reading = await prober_of(server.url, deadlines=QUICK).probe()
    assert reading.unfinished_phase == phase
    assert reading.phases[phase] >= QUICK["idle"] * 0.9
    assert phase not in ProbeTotals(target="t", placement=Placement.LOCAL).after(reading).phase_seconds


async def test_what_the_server_says_is_short_and_holds_no_key(prober_of: MakeProber):
    said = {"error": {"message": f"key s3cr3t-key is bad, see {'x ' * 10_000}"}}
    async with FakeOpenAI(replying(401, said)) as server:
        reading = await prober_of(server.url, api_key="s3cr3t-key").probe()
    assert reading.detail.startswith("HTTP 401: key [redacted] is bad")
    assert len(reading.detail) <= 200
    assert server.requests[0].headers["authorization"] == "Bearer s3cr3t-key"


async def test_an_endless_error_body_is_cut(prober_of: MakeProber):
    async def endless(_request: FakeRequest, wire: Wire) -> None:
        await wire.send(SSE_HEAD.replace(b"200 OK", b"500 No").replace(b"event-stream", b"plain"))
        while True:
            await wire.chunk(b"x" * 65_536)

    async with FakeOpenAI(endless) as server, asyncio.timeout(3):
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.SERVER_ERROR


async def test_an_endless_stream_is_cut(prober_of: MakeProber):
    padding = json.dumps(delta(content="") | {"obfuscation": "x" * 65_536})

    async def endless(wire: Wire) -> None:
        while True:
            await wire.event(padding)

    async with FakeOpenAI(scripted(head, endless)) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.INVALID_RESPONSE
    assert "larger than 8388608 bytes" in reading.detail


async def test_a_refused_connection_is_told_without_the_librarys_own_names(
    prober_of: MakeProber, unused_tcp_port: int
) -> None:
    reading = await prober_of(f"http://127.0.0.1:{unused_tcp_port}").probe()
    assert reading.detail == f"no connection to 127.0.0.1:{unused_tcp_port} (connection refused)"
