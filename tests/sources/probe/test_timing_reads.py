"""Stamps are those of the socket's reads, however late a task gets to their bytes."""

import asyncio
import time
from itertools import accumulate, pairwise
from pathlib import Path
from statistics import median

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.sources.probe import ProbeTargetSettings
from pinchpoint.sources.probe.lateness import TICK_SECONDS, LoopWatch
from pinchpoint.sources.probe.reads import MAX_MARKS, Reads
from pinchpoint.sources.probe.session import open_session
from pinchpoint.sources.probe.tracing import Stamps, attempt
from tests.fakes.certificates import Authority
from tests.fakes.openai_server import FakeOpenAI, FakeRequest, Wire, delta, head, streaming
from tests.sources.probe.conftest import MakeProber


@given(reads=st.lists(st.integers(1, 9), max_size=20), cuts=st.lists(st.integers(0, 200), max_size=20))
def test_any_cut_of_a_body_gives_each_byte_the_stamp_of_its_read(reads: list[int], cuts: list[int]):
    body = bytes(number for number, size in enumerate(reads) for _ in range(size))
    marked = Reads()
    for number, end_of_read in enumerate(accumulate(reads)):
        marked.mark(end_of_read, number)
    places = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    pieces = [piece for begin, end in pairwise(places) for piece in marked.cut(body[begin:end], -1)]
    assert b"".join(data for data, _ in pieces) == body
    assert all(set(data) == {stamp} for data, stamp in pieces)


def test_bytes_without_a_mark_are_as_late_as_they_are_asked_for():
    reads = Reads()
    reads.mark(2, 10)
    assert list(reads.cut(b"abc", 99)) == [(b"ab", 10), (b"c", 99)]


def test_a_peer_that_sends_byte_by_byte_fills_no_memory():
    reads = Reads()
    for end_of_read in range(1, 3 * MAX_MARKS):
        reads.mark(end_of_read, end_of_read)
    pieces = list(reads.cut(bytes(3 * MAX_MARKS), 7))
    assert len(pieces) == MAX_MARKS + 1


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_on_any_loop_reads_that_a_busy_task_finds_together_keep_their_own_times(loop: str, scheme: str, tmp_path: Path):
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(reads_keep_their_own_times(scheme, tmp_path))


async def reads_keep_their_own_times(scheme: str, tmp_path: Path) -> None:
    sent: list[int] = []

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        await head(wire)
        for number in range(10):
            sent.append(time.perf_counter_ns())
            await wire.event(delta(content=f"{number} "))
            await asyncio.sleep(0.03)
        await wire.end()

    authority = Authority(tmp_path)
    tls = authority.issue("IP:127.0.0.1").server() if scheme == "https" else None
    async with FakeOpenAI(answer, tls) as server:
        target = ProbeTargetSettings.model_validate(
            {"name": "t", "url": server.url, "model": "m", "tls": {"ca_file": authority.file}}
        )
        stamps = Stamps(started_ns=0)
        attempt.set(stamps)
        async with await open_session(target) as session, session.post(server.url, json={}) as response:
            await asyncio.sleep(0.4)
            pieces = [piece for data in [await response.content.readany()] for piece in stamps.reads.cut(data, 0)]
    assert (stamps.handshake_started_ns is not None) is (scheme == "https")
    assert len(pieces) == len(sent) == 10
    lags = [stamp - before for (_, stamp), before in zip(pieces, sent, strict=True)]
    assert 0 < median(lags) < 0.02e9, lags


async def test_a_loop_that_is_away_is_late_then_and_at_no_other_time():
    watch = LoopWatch()
    with watch:
        await asyncio.sleep(4 * TICK_SECONDS)
        before = time.perf_counter_ns()
        time.sleep(0.2)  # noqa: ASYNC251 - what a loop must not suffer
        during = time.perf_counter_ns() - 50_000_000
        await asyncio.sleep(20 * TICK_SECONDS)
        after = time.perf_counter_ns()
        assert watch.lateness(during, during) > 0.15
        assert watch.lateness(before - 50_000_000, after) > 0.15
        assert watch.lateness(before - 15_000_000, before - 10_000_000) < 0.1
        assert watch.lateness(after, after) < 0.1
    assert watch.lateness(during, during) > 0.15, "also when nobody watches any more"


async def test_a_loop_that_has_not_come_back_yet_is_late_already():
    with LoopWatch() as watch:
        await asyncio.sleep(0)
        time.sleep(0.1)  # noqa: ASYNC251
        now = time.perf_counter_ns()
        assert watch.lateness(now, now) > 0.08


async def test_several_probes_watch_the_loop_together(prober_of: MakeProber):
    async with FakeOpenAI(streaming(tokens=12, ttft=0.05)) as server:
        prober = prober_of(server.url, watch=LoopWatch())
        readings = await asyncio.gather(*(prober.probe() for _ in range(8)))
    assert {reading.outcome for reading in readings} == {"ok"}
    assert all(handle.cancelled() for handle in _ticks()), "nothing ticks when nobody watches"


def _ticks() -> list[asyncio.TimerHandle]:
    scheduled = getattr(asyncio.get_running_loop(), "_scheduled", [])
    return [handle for handle in scheduled if "LoopWatch" in repr(handle)]
