"""The real peers start, answer and end: what every end-to-end test stands on."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.e2e.stack import Alertmanager, Program, Prometheus, VictoriaMetrics, WebhookSink

RULES = """
groups:
  - name: test
    rules:
      - alert: Always
        expr: thing_up == 1
        labels: {severity: critical}
"""


@contextlib.asynccontextmanager
async def exposition(body: str) -> AsyncIterator[str]:
    """The address of a server that answers ``body``."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=body)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


def is_running(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


async def test_they_scrape_answer_and_are_gone_afterwards(tmp_path: Path) -> None:
    async with exposition("# TYPE thing_up gauge\nthing_up 1\n") as address:

        async def live(peer: Prometheus) -> None:
            async with peer:
                assert await peer.value("vector(1)") == 1
                assert (await peer.wait_until("thing_up == 1"))[0]["metric"]["job"] == "thing"
                (target,) = await peer.targets()
                assert (target["health"], target["lastError"]) == ("up", "")
            assert not is_running(peer.pid)

        peers = Prometheus(tmp_path, {"thing": address}), VictoriaMetrics(tmp_path, {"thing": address})
        await asyncio.gather(*map(live, peers))


async def test_a_rule_pages_through_alertmanager_and_a_post_too(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(RULES)
    async with (
        exposition("thing_up 1\n") as address,
        WebhookSink() as sink,
        Alertmanager(tmp_path, sink.url) as alertmanager,
        Prometheus(
            tmp_path, {"thing": address}, rules=[tmp_path / "rules.yml"], alertmanager=alertmanager
        ) as prometheus,
    ):
        await alertmanager.post({"labels": {"alertname": "Posted"}})
        await prometheus.wait_until('ALERTS{alertname="Always", alertstate="firing"}')
        pages = await asyncio.gather(sink.wait_for("Posted", "firing"), sink.wait_for("Always", "firing"))
        assert pages[1]["labels"]["severity"] == "critical"
        assert len(await alertmanager.alerts()) == 2
        assert sink.alerts("Always", "resolved") == []


async def test_what_does_not_start_says_why(tmp_path: Path) -> None:
    broken: Program = Prometheus(tmp_path, {}, config={"scrape_configs": "no list"})
    with pytest.raises(AssertionError, match=r"prometheus does not start:(?s:.*)cannot unmarshal"):
        await broken.__aenter__()
    assert not is_running(broken.pid)


async def test_a_wait_in_vain_shows_what_was_asked_and_the_log(tmp_path: Path) -> None:
    async with Prometheus(tmp_path, {"nobody": "127.0.0.1:1"}) as prometheus:
        with pytest.raises(AssertionError, match=r"thing_up stays empty for 0 s; targets \["):
            await prometheus.wait_until("thing_up", timeout=0)
