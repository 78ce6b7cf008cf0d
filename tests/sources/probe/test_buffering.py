"""A real nginx, as Debian sets it up, between prober and server: what its buffers do is told from what servers do."""

from pathlib import Path

import pytest

from pinchpoint.snapshot import ProbeOutcome, ProbeReading
from tests.fakes.nginx import nginx
from tests.fakes.openai_server import FakeOpenAI, delta, hang, head, say, scripted, streaming
from tests.sources.probe.conftest import MakeProber

TTFT, TPOT = 0.05, 0.01


async def through(
    folder: Path, directives: str, prober_of: MakeProber, *, tokens: int, tpot: float = TPOT
) -> ProbeReading:
    async with FakeOpenAI(streaming(tokens=tokens, ttft=TTFT, tpot=tpot)) as server:
        with nginx(folder, server.url, directives) as url:
            return await prober_of(url).probe()


@pytest.mark.parametrize(
    "directives",
    ["proxy_buffering off;", 'proxy_http_version 1.1; proxy_set_header Connection "";'],
    ids=["buffering off", "HTTP/1.1 upstream, whose chunks are passed on"],
)
async def test_an_nginx_that_passes_text_on_is_not_noticed(directives: str, tmp_path: Path, prober_of: MakeProber):
    reading = await through(tmp_path, directives, prober_of, tokens=64)
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert not reading.buffered
    assert reading.ttft_seconds is not None
    assert TTFT < reading.ttft_seconds < 4 * TTFT
    assert reading.tpot_seconds == pytest.approx(TPOT, rel=0.2)


async def test_an_nginx_that_holds_back_the_whole_answer_makes_it_not_streamed(tmp_path: Path, prober_of: MakeProber):
    reading = await through(tmp_path, "", prober_of, tokens=24)
    assert reading.outcome is ProbeOutcome.NOT_STREAMED, reading.detail
    assert reading.buffered
    assert (reading.ttft_seconds, reading.tpot_seconds) == (None, None)


async def test_an_nginx_whose_buffers_fill_makes_lumps_of_the_stream(tmp_path: Path, prober_of: MakeProber):
    reading = await through(tmp_path, "", prober_of, tokens=200)
    assert reading.buffered
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert "lumps" in reading.detail
    assert reading.ttft_seconds is not None
    assert reading.ttft_seconds > 4 * TTFT, "that is when the first buffer was full, and when a client sees text"


async def test_a_fast_stream_through_an_nginx_that_does_not_buffer_is_not_noticed_either(
    tmp_path: Path, prober_of: MakeProber
):
    reading = await through(tmp_path, "proxy_buffering off;", prober_of, tokens=200, tpot=0.001)
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert not reading.buffered


async def test_an_nginx_whose_server_is_gone_is_a_proxy_that_says_so(tmp_path: Path, prober_of: MakeProber):
    with nginx(tmp_path, "http://127.0.0.1:1") as url:
        reading = await prober_of(url).probe()
    assert reading.outcome is ProbeOutcome.PROXY
    assert reading.http_status == 502


async def test_an_nginx_that_loses_patience_before_the_first_token_is_a_proxy_too(
    tmp_path: Path, prober_of: MakeProber
):
    async with FakeOpenAI(lambda _request, wire: wire.hang()) as server:
        with nginx(tmp_path, server.url, "proxy_read_timeout 1s;") as url:
            reading = await prober_of(url).probe()
    assert reading.outcome is ProbeOutcome.PROXY
    assert reading.http_status == 504


async def test_an_nginx_that_loses_patience_in_the_middle_truncates(tmp_path: Path, prober_of: MakeProber):
    async with FakeOpenAI(scripted(head, say(delta(content="a")), hang)) as server:
        with nginx(tmp_path, server.url, "proxy_buffering off; proxy_read_timeout 1s;") as url:
            reading = await prober_of(url).probe()
    assert reading.outcome is ProbeOutcome.TRUNCATED
    assert reading.ttft_seconds is not None
