"""What a scraper asks beside the metrics: whether the engine lives, and which version it is."""

from time import monotonic

import pytest
from aiohttp import web

from pinchpoint.snapshot import Absence, EngineReading, Reason
from tests.sources.engine.servers import BODY, QUICK, absence_of, http, reading_of, says, scraper, stuck


async def test_an_engine_whose_core_died_is_dead_though_its_metrics_answer():
    async with http(metrics=says(BODY), health=says(b"", 503)) as url:
        assert (await absence_of(url)).reason is Reason.ENGINE_DEAD


@pytest.mark.parametrize("status", [200, 404, 500])
async def test_any_other_health_is_ignored(status: int):
    async with http(metrics=says(BODY), health=says(b"", status)) as url:
        await reading_of(url)


async def test_a_health_and_a_version_that_hang_cost_a_second_each_and_no_reading():
    async with http(metrics=says(BODY), health=stuck, version=stuck) as url, scraper(url) as engine:
        begun = monotonic()
        reading = await engine.scrape(monotonic)
        assert isinstance(reading, EngineReading)
        assert reading.at - begun < 1
        assert 1.9 < monotonic() - begun < 4


async def test_a_health_that_hangs_stays_within_the_scrapes_deadline():
    async with http(metrics=says(BODY), health=stuck, version=stuck) as url, scraper(url, QUICK) as engine:
        begun = monotonic()
        assert isinstance(await engine.scrape(monotonic), EngineReading)
        assert monotonic() - begun < 0.3 + 0.5


async def test_an_engine_that_moves_is_not_asked_for_its_health_and_one_that_stands_still_is():
    moved, health = iter([1, 2, 3, 3, 3, 4]), []

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=f"vllm:generation_tokens_total {next(moved)}\n")

    async def asked(request: web.Request) -> web.Response:
        health.append(1)
        return web.Response(status=503 if len(health) == 3 else 200)

    async with http(metrics=metrics, health=asked) as url, scraper(url) as engine:
        outcomes = [await engine.scrape(monotonic) for _ in range(6)]
    assert len(health) == 3  # at the first scrape, and at the two that saw nothing move
    assert [outcome.reason if isinstance(outcome, Absence) else None for outcome in outcomes] == [
        *[None] * 4,
        Reason.ENGINE_DEAD,
        None,
    ]


async def test_a_restart_begins_an_epoch_and_asks_for_the_version_again():
    tokens, version = iter([50, 90, 3, 5]), iter(["0.32.0", "0.33.0"])

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(text=f"vllm:generation_tokens_total {next(tokens)}\n")

    async def told(request: web.Request) -> web.Response:
        return web.json_response({"version": next(version)})

    async with http(metrics=metrics, version=told) as url, scraper(url) as engine:
        readings = [await engine.scrape(monotonic) for _ in range(4)]
    assert all(isinstance(reading, EngineReading) for reading in readings)
    assert [r.epoch for r in readings] == ["#0", "#0", "#1", "#1"]
    assert [r.facts.version for r in readings] == ["0.32.0", "0.32.0", "0.33.0", "0.33.0"]


@pytest.mark.parametrize("body", [b"[]", b'{"version": 3}', b'{"version": "\\u0000"}', b"[" * 5000, b"\xff"])
async def test_a_version_that_makes_no_sense_is_unknown(body: bytes):
    async with http(metrics=says(BODY), version=says(body)) as url:
        assert (await reading_of(url)).facts.version is None
