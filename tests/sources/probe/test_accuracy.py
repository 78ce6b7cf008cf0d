"""How true the client's numbers are, against the server's own record of the same request."""

import asyncio

import pytest

from pinchpoint.sources.probe import Prober
from tests.fakes.openai_server import FakeOpenAI, streaming
from tests.sources.probe.conftest import MakeProber

ATTEMPTS = 3  # a shared machine stalls now and then: one clean run is proof that the client can be right


async def errors(prober: Prober, server: FakeOpenAI) -> tuple[float, float]:
    """The relative error of TTFT and of TPOT in one probe."""
    reading, truth = await prober.probe(), server.truths[-1]
    assert reading.ttft_seconds is not None
    assert reading.tpot_seconds is not None
    return reading.ttft_seconds / truth.ttft_seconds - 1, reading.tpot_seconds / truth.tpot_seconds - 1


async def test_ttft_and_tpot_are_those_of_the_server(prober_of: MakeProber):
    async with FakeOpenAI(streaming()) as server:
        server.answer = streaming(server, tokens=32, ttft=0.1, tpot=0.01)
        prober = prober_of(server.url)
        found = [await errors(prober, server) for _ in range(ATTEMPTS)]
    assert min(abs(ttft) for ttft, _ in found) < 0.05
    assert min(abs(tpot) for _, tpot in found) < 0.02


@pytest.mark.parametrize("concurrency", [10])
async def test_they_still_are_when_many_probes_run_at_once(concurrency: int, prober_of: MakeProber):
    async with FakeOpenAI(streaming()) as server:
        server.answer = streaming(server, tokens=20, ttft=0.1, tpot=0.01)
        probers = [prober_of(server.url) for _ in range(concurrency)]
        medians = []
        for _ in range(ATTEMPTS):
            readings = await asyncio.gather(*(prober.probe() for prober in probers))
            truths = sorted(truth.ttft_seconds for truth in server.truths[-concurrency:])
            seen = sorted(reading.ttft_seconds or 0 for reading in readings)
            medians.append(seen[concurrency // 2] / truths[concurrency // 2] - 1)
    assert min(abs(median) for median in medians) < 0.15
