"""Hosted probes under the daemon: paid only with leave, told apart from the sign of life, and never by a scrape."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pinchpoint.config import Settings
from pinchpoint.daemon.board import Board
from pinchpoint.daemon.lag import LoopLag
from pinchpoint.daemon.node import NoGpus
from pinchpoint.daemon.probing import Probing
from pinchpoint.snapshot import ProbeTotals
from pinchpoint.sources.probe.spend.book_file import NAME
from tests.fakes.daemon import RunningDaemon
from tests.fakes.openai_server import FakeOpenAI, FakeRequest, Wire, replying, streaming

PRICE = {"input_usd_per_million_tokens": 1.0, "output_usd_per_million_tokens": 2.0}
NOON = 1_796_040_000.0  # 2026-11-30 12:00 UTC
MODELS = replying(200, {"object": "list", "data": [{"id": "m"}]})


class Jobs:
    """A scheduler that runs nothing by itself."""

    def __init__(self) -> None:
        self.given: dict[str, Callable[[], Any]] = {}

    def every(self, job: str, seconds: float, run: Callable[[], Any], **how: Any) -> None:
        self.given[job] = run

    def cancel(self, job: str) -> None:
        self.given.pop(job, None)


class House:
    """Probing with what it needs, on a clock that the test sets."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 0.0
        self.jobs = Jobs()
        self.board = Board(Settings(), NoGpus())
        self.probing = Probing(
            self.jobs, self.board, LoopLag(lambda: self.now), lambda: self.now, lambda: NOON + self.now
        )

    def follow(self, url: str, *, caps: dict[str, Any] | None = None, folder: Path | None = None, **more: Any) -> None:
        target = {"name": "h", "url": url, "model": "m", "placement": "hosted", **more}
        probes = {"targets": [target], "caps": caps or {}}
        self.probing.follow(Settings(probes=probes, state_directory=folder or self.folder))

    async def probe(self, after: float = 300.0) -> ProbeTotals:
        self.now += after
        await self.jobs.given["probe/h"]()
        return self.totals

    @property
    def totals(self) -> ProbeTotals:
        (totals,) = self.board.snapshot(self.now, 0.0)[0].probe_totals
        return totals


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    house = House(tmp_path / "state")
    yield house
    await house.probing.close()


def posts(server: FakeOpenAI) -> int:
    return sum(request.method == "POST" for request in server.requests)


async def test_a_probe_is_paid_for_and_what_is_left_is_told(house: House) -> None:
    async with FakeOpenAI(streaming()) as server:
        house.follow(server.url, price=PRICE)
        spend = (await house.probe()).spend
    assert spend.tokens_total == 112, "100 of the prompt, 12 of the answer, as the server says"
    assert spend.usd_total == pytest.approx(124e-6)
    assert spend.remaining_tokens["day"] > 100_000
    ledger = json.loads((house.folder / NAME).read_text())["ledger"]
    (day,) = ledger["accounts"]["h"]["days"].values()
    assert (day["tokens"], day["nano_usd"]) == (112, 124_000)


async def test_without_a_price_money_is_unknown_and_not_nothing(house: House) -> None:
    async with FakeOpenAI(streaming()) as server:
        house.follow(server.url)
        assert house.totals.spend.usd_total is None
        spend = (await house.probe()).spend
    assert (spend.tokens_total, spend.usd_total, spend.remaining_usd) == (112, None, {})


async def test_at_its_cap_a_target_is_not_asked_and_the_last_result_stays(house: House) -> None:
    async with FakeOpenAI(streaming()) as server:
        house.follow(server.url, caps={"tokens_per_month": 1500})
        for _ in range(6):
            totals = await house.probe()
        served = posts(server)
    assert 1 <= served < 6
    assert totals.requests_total == served
    assert totals.skipped_total == {"budget": 6 - served}
    assert totals.spend.tokens_total == 112 * served


async def test_a_disk_that_is_gone_stops_hosted_probes_and_no_local_one(house: House, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    async with FakeOpenAI(streaming()) as server:
        house.follow(server.url, folder=tmp_path / "file")
        assert (await house.probe()).skipped_total == {"ledger": 1}
        house.follow(server.url, folder=tmp_path / "file", placement="local")
        assert (await house.probe()).requests_total == 1
        assert house.totals.spend is None


async def test_a_refused_key_stops_the_spending_until_an_hour_is_over_or_the_configuration_is_read_again(
    house: House,
) -> None:
    async with FakeOpenAI(replying(401, {"error": {"message": "bad key", "code": "invalid_api_key"}})) as server:
        house.follow(server.url)
        for _ in range(5):
            totals = await house.probe()
        assert (posts(server), totals.skipped_total) == (1, {"auth_stop": 4})
        assert totals.spend.tokens_total == 0
        house.follow(server.url)
        await house.probe()
        assert posts(server) == 2
        await house.probe(3600)
        assert posts(server) == 3


async def test_a_server_that_says_when_to_come_again_is_left_alone_until_then(house: House) -> None:
    async with FakeOpenAI(replying(429, {"error": {"message": "slow down"}}, retry_after="1000")) as server:
        house.follow(server.url)
        for _ in range(4):
            totals = await house.probe()
        assert (posts(server), totals.skipped_total) == (1, {"backoff": 3})
        await house.probe()
        assert posts(server) == 2


async def test_the_sign_of_life_is_free_apart_from_the_probe_and_ends_a_pause_when_the_server_is_back(
    house: House,
) -> None:
    answers = {"GET": replying(503, "down"), "POST": replying(503, "down")}

    async def answer(request: FakeRequest, wire: Wire) -> None:
        await answers[request.method](request, wire)

    async with FakeOpenAI(answer) as server:
        house.follow(server.url)
        assert house.totals.endpoint_up is None
        for _ in range(4):
            await house.probe()
        await house.jobs.given["liveness/h"]()
        assert house.totals.endpoint_up is False
        before = posts(server)
        await house.probe()
        assert posts(server) == before, "in back-off"
        answers |= {"GET": MODELS, "POST": streaming()}
        await house.jobs.given["liveness/h"]()
        assert house.totals.endpoint_up is True
        totals = await house.probe()
    assert totals.requests_total == posts(server) == before + 1
    assert totals.spend.tokens_total == 112


async def test_an_api_that_refuses_the_key_lives(house: House) -> None:
    async with FakeOpenAI(replying(401, {"error": "no"})) as server:
        house.follow(server.url)
        await house.jobs.given["liveness/h"]()
    assert house.totals.endpoint_up is True


async def test_a_local_target_is_asked_nothing_for_nothing_and_no_liveness_may_be_wanted(house: House) -> None:
    house.follow("http://127.0.0.1:9", placement="local")
    assert set(house.jobs.given) == {"probe/h"}
    house.follow("http://127.0.0.1:9", liveness_interval_seconds=None)
    assert set(house.jobs.given) == {"probe/h"}


async def test_a_probe_that_is_cancelled_in_the_middle_has_spent_its_worst(house: House) -> None:
    async def never(_: FakeRequest, wire: Wire) -> None:
        await wire.hang()

    async with FakeOpenAI(never) as server:
        house.follow(server.url, price=PRICE)
        probing = asyncio.create_task(house.probe())
        while not server.requests:
            await asyncio.sleep(0.001)
        probing.cancel()
        await asyncio.gather(probing, return_exceptions=True)
    spend = house.totals.spend
    assert spend.tokens_total > 1000
    ledger = json.loads((house.folder / NAME).read_text())["ledger"]
    assert [day["tokens"] for day in ledger["accounts"]["h"]["days"].values()] == [spend.tokens_total]


async def test_a_thousand_scrapes_spend_nothing_and_a_restart_sends_no_probe_of_its_own(tmp_path: Path) -> None:
    async def answer(request: FakeRequest, wire: Wire) -> None:
        await (streaming() if request.method == "POST" else MODELS)(request, wire)

    async with FakeOpenAI(answer) as server:
        target = {"name": 'a "quoted" one', "url": server.url, "model": "m", "placement": "hosted", "price": PRICE}
        config = tmp_path / "pinchpoint.yaml"
        given = {
            "gpu": {"enabled": False},
            "discovery": {"loopback": False},
            "probes": {"targets": [target]},
            "state_directory": str(tmp_path / "state"),
        }
        config.write_text(json.dumps(given))

        def first_life() -> None:
            with RunningDaemon(tmp_path, f"--config.file={config}") as daemon:
                daemon.wait_for_series("pinchpoint_probe_up", 1.0)
                asyncio.run_coroutine_threadsafe(scrape(daemon.url, 1000), loop).result(120)
                assert daemon.series("pinchpoint_probe_endpoint_up") == [1.0]
                assert daemon.series("pinchpoint_probe_spend_tokens_total") == [112.0]
                assert daemon.series("pinchpoint_probe_budget_remaining_tokens", period="day")[0] > 0
                daemon.process.kill()

        def second_life() -> None:
            with RunningDaemon(tmp_path, f"--config.file={config}") as daemon:
                daemon.wait_for_series("pinchpoint_probe_skipped_total", 1.0, cause="too_soon")

        loop = asyncio.get_running_loop()
        await asyncio.to_thread(first_life)
        await asyncio.to_thread(second_life)
        assert posts(server) == 1


async def scrape(url: str, times: int) -> None:
    paths = ("/metrics", "/probe?target=a+%22quoted%22+one", "/", "/api/v1/status")
    connector = aiohttp.TCPConnector(limit=8)
    async with aiohttp.ClientSession(url, connector=connector) as client:

        async def one(path: str) -> None:
            async with client.get(path) as answer:
                assert answer.status == 200
                assert await answer.read()

        await asyncio.gather(*(one(paths[number % 4]) for number in range(times)))
