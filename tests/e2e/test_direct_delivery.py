"""From an engine's full KV cache to a page without any Prometheus: the daemon, the real Alertmanager, who is paged.

The shipped alerts are used as they are, but for how long one waits.
"""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.e2e.stack import Alertmanager, WebhookSink, free_port
from tests.fakes.daemon import RunningDaemon

EXPOSITION = Path("tests/data/vllm-real/c-moderate/010.prom").read_text()
PAGE = "PinchpointKVCacheHigh"
DOWN = "PinchpointEngineDown"


class Engine:
    """A vLLM that makes tokens, and whose KV cache is as full as one says."""

    def __init__(self) -> None:
        self.url, self.usage, self.tokens, self.is_dead = "", 0.3, 1000, False

    def fill(self, ratio: float) -> None:
        self.usage, self.is_dead = ratio, False

    def die(self) -> None:
        self.is_dead = True

    async def answer(self, request: web.Request) -> web.Response:
        if self.is_dead or request.path != "/metrics":
            return web.Response(status=502 if self.is_dead else 404)
        self.tokens += 10
        text = EXPOSITION
        for name, value in (("kv_cache_usage_perc", self.usage), ("generation_tokens_total", self.tokens)):
            text, changed = re.subn(rf"(?m)^(vllm:{name}\{{.*\}}) .*$", rf"\1 {value}", text)
            assert changed
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4"})


@asynccontextmanager
async def engine() -> AsyncIterator[Engine]:
    made = Engine()
    app = web.Application()
    app.router.add_get("/{rest:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()


def config(folder: Path, engine: Engine, *members: str, **more: Any) -> str:
    file = folder / "pinchpoint.yaml"
    given = {
        "gpu": {"enabled": False},
        "discovery": {"loopback": False},
        "engines": {"interval_seconds": 1, "targets": [{"name": "chat", "url": engine.url}]},
        "state_directory": str(folder / "memory"),
        "alertmanager": {
            "targets": [{"url": url, "timeout_seconds": 2} for url in members],
            "evaluation_interval_seconds": 1,
            "resend_seconds": 2,
            "instance": "node-1",
            "labels": {"cluster": "lab"},
            **more,
        },
    }
    file.write_text(json.dumps(given))
    return f"--config.file={file}"


def running(folder: Path, flag: str) -> RunningDaemon:
    return RunningDaemon(folder, flag, module="tests.fakes.quick_alerts")


async def until(what: Any, description: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, f"waited in vain for {description}"
        await asyncio.sleep(0.1)


def counts(human: WebhookSink, name: str = PAGE) -> tuple[int, int]:
    """How often somebody was told that it fires, and that it is over."""
    return len(human.alerts(name, "firing")), len(human.alerts(name, "resolved"))


@pytest.mark.timeout(120)
async def test_a_full_kv_cache_pages_once_with_all_that_is_needed_and_the_page_resolves(tmp_path: Path) -> None:
    async with engine() as chat, WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        with running(tmp_path, config(tmp_path, chat, member.url)) as daemon:
            await human.wait_for("PinchpointWatchdog", "firing")
            chat.fill(0.95)
            page = await human.wait_for(PAGE, "firing")
            labels = {"source": "pinchpoint", "instance": "node-1", "cluster": "lab", "engine": "chat"}
            assert labels.items() <= page["labels"].items()
            assert page["labels"]["severity"] == "critical"
            assert "has held 95% of its KV-cache blocks" in page["annotations"]["description"]
            assert page["annotations"]["runbook_url"].endswith(f"/{PAGE}.md")
            assert page["generatorURL"].startswith("http://")
            query = ["amtool", f"--alertmanager.url={member.url}", "alert", "query", f"alertname={PAGE}", "-o", "json"]
            said = await asyncio.to_thread(subprocess.run, query, capture_output=True, check=True)
            (asked,) = json.loads(said.stdout)
            assert asked["labels"] == page["labels"]
            told = json.loads(await asyncio.to_thread(daemon.get, "/api/v1/status"))["alerting"]
            assert (PAGE, "firing") in [(each["alert"], each["state"]) for each in told["active"]]
            assert await asyncio.to_thread(daemon.series, "pinchpoint_alertmanager_up") == [1.0]
            fires = {"alertname": PAGE, "alertstate": "firing", "engine": "chat"}
            assert await asyncio.to_thread(lambda: daemon.series("pinchpoint_alert_state", **fires)) == [1.0]
            chat.fill(0.3)
            await human.wait_for(PAGE, "resolved")
            await asyncio.sleep(4)  # two resends of the end
            assert counts(human) == (1, 1)
            lines = [line for line in daemon.log.splitlines() if PAGE in line]
            assert [re.search(r'msg="([^"]+)"', line)[1] for line in lines] == ["alert fires", "alert has ended"]  # type: ignore[index]


@pytest.mark.timeout(120)
async def test_an_engine_that_is_down_inhibits_its_other_pages(tmp_path: Path) -> None:
    inhibiting = {
        "route": {"receiver": "w", "group_by": ["..."], "group_wait": "2s", "group_interval": "1s"},
        "receivers": [{"name": "w", "webhook_configs": [{"url": "", "send_resolved": True}]}],
        "inhibit_rules": [
            {
                "source_matchers": [f'alertname="{DOWN}"'],
                "target_matchers": [f'alertname="{PAGE}"'],
                "equal": ["engine", "source"],
            }
        ],
    }
    async with engine() as chat, WebhookSink() as human:
        inhibiting["receivers"][0]["webhook_configs"][0]["url"] = human.url  # type: ignore[index]
        async with Alertmanager(tmp_path, human.url, config=inhibiting) as member:
            chat.die()
            with running(tmp_path, config(tmp_path, chat, member.url)):
                down = await human.wait_for(DOWN, "firing")
                # the same node's other alert, from the same source
                labels = {**down["labels"], "alertname": PAGE}
                await member.post({"labels": labels})
                await asyncio.sleep(4)
                assert counts(human) == (0, 0)
                chat.fill(0.3)
                await human.wait_for(DOWN, "resolved")
                await human.wait_for(PAGE, "firing")


@pytest.mark.timeout(180)
async def test_an_alertmanager_that_is_away_when_it_begins_and_ends_misses_nothing_that_is_so(tmp_path: Path) -> None:
    """Ten minutes are as many resends as here, at a thirtieth of the pace."""
    port = free_port()
    async with engine() as chat, WebhookSink() as human:
        flag = config(tmp_path, chat, f"http://127.0.0.1:{port}")

        def member() -> Alertmanager:
            made = Alertmanager(tmp_path, human.url)
            made.port = port
            return made

        with running(tmp_path, flag) as daemon:
            async with member():
                await human.wait_for("PinchpointWatchdog", "firing")
            chat.fill(0.95)
            await asyncio.sleep(12)
            waiting, firing = [
                await asyncio.to_thread(daemon.series, f"pinchpoint_{name}")
                for name in ("alertmanager_queue_length", "alerts_firing")
            ]
            assert waiting == [sum(firing)]  # what is so, however long it takes
            async with member():
                await human.wait_for(PAGE, "firing", timeout=60)
                await asyncio.sleep(4)
                assert counts(human) == (1, 0)
            chat.fill(0.3)
            ended = lambda: f'msg="alert has ended" alert={PAGE}' in daemon.log  # noqa: E731
            await asyncio.to_thread(daemon.wait_for, ended, "the trouble to be over")
            async with member() as back:
                told = lambda: daemon.series("pinchpoint_alertmanager_up") == [1.0]  # noqa: E731
                await asyncio.to_thread(daemon.wait_for, told, "the member to be told again", 60)
                await asyncio.sleep(2)
                assert counts(human)[0] == 1
                names = {alert["labels"]["alertname"] for alert in await back.alerts()}
                assert "PinchpointWatchdog" in names
                assert PAGE not in names
            assert daemon.log.count("Alertmanager is not told of alerts") == 2
            assert daemon.log.count("Alertmanager is told of alerts again") == 2


@pytest.mark.timeout(120)
async def test_of_two_members_either_suffices(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        chat, human = await stack.enter_async_context(engine()), await stack.enter_async_context(WebhookSink())
        alive, mortal = [await stack.enter_async_context(Alertmanager(tmp_path, human.url)) for _ in range(2)]
        with running(tmp_path, config(tmp_path, chat, mortal.url, alive.url)) as daemon:
            chat.fill(0.95)
            await until(lambda: counts(human)[0] == 2, "a page by each, for here they are no cluster")
            await mortal._end()
            chat.fill(0.3)
            await human.wait_for(PAGE, "resolved")
            chat.fill(0.95)
            await until(lambda: counts(human)[0] == 3, "a page by the one that is left")
            up = await asyncio.to_thread(lambda: daemon.series("pinchpoint_alertmanager_up", alertmanager=mortal.url))
            assert up == [0.0]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("killed", [True, False], ids=["kill -9", "SIGTERM"])
async def test_a_restart_loses_no_page_doubles_none_and_leaves_none_hanging(tmp_path: Path, killed: bool) -> None:
    async with engine() as chat, WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        # valid for a minute: an alert must outlive the restart at Alertmanager's, as 4 minutes do with the defaults
        flag = config(tmp_path, chat, member.url, resend_seconds=15)
        chat.fill(0.95)
        with running(tmp_path, flag) as daemon:
            await human.wait_for(PAGE, "firing")
            (first,) = [alert for alert in await member.alerts() if alert["labels"]["alertname"] == PAGE]
            if killed:
                daemon.process.kill()
            else:
                assert (await asyncio.to_thread(daemon.terminate))[1] == 0
        await asyncio.sleep(1.5)
        assert counts(human) == (1, 0), "the end of the process is not the end of the trouble"
        with running(tmp_path, flag) as daemon:
            await asyncio.sleep(10)  # past the time in which nothing ends
            assert counts(human) == (1, 0)
            (again,) = [alert for alert in await member.alerts() if alert["labels"]["alertname"] == PAGE]
            assert again["startsAt"] == first["startsAt"]
            chat.fill(0.3)
            if killed:
                daemon.process.kill()  # and what ends while nobody looks
        with running(tmp_path, flag):
            await human.wait_for(PAGE, "resolved")
            await asyncio.sleep(3)
            assert counts(human) == (1, 1)


@pytest.mark.timeout(120)
async def test_what_waits_goes_on_waiting_after_a_kill(tmp_path: Path) -> None:
    """The clock of ``for`` is remembered: the shipped alert waits for five minutes."""
    async with engine() as chat, WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        chat.fill(0.95)
        flag = config(tmp_path, chat, member.url)

        def since(daemon: RunningDaemon) -> float | None:
            daemon.wait_for(lambda: daemon.samples("pinchpoint_alert_last"), "the first evaluation")
            told = json.loads(daemon.get("/api/v1/status"))["alerting"]
            found = [each for each in told["active"] if each["alert"] == PAGE]
            assert all(each["state"] == "pending" for each in found)
            return found[0]["since_unix_seconds"] if found else None

        with RunningDaemon(tmp_path, flag) as daemon:
            before = await asyncio.to_thread(daemon.wait_for, lambda: since(daemon), "a pending alert")
            await asyncio.sleep(8)
            daemon.process.kill()
        killed_at = time.time()
        with RunningDaemon(tmp_path, flag) as daemon:
            after = await asyncio.to_thread(daemon.wait_for, lambda: since(daemon), "a pending alert")
            # later by the seconds in which nobody knew, until the engine was read again; not begun anew
            assert before - 0.1 <= after < killed_at
            assert counts(human) == (0, 0)


@pytest.mark.timeout(120)
async def test_a_reload_turns_it_on_and_off_and_a_mistake_leaves_it_as_it_was(tmp_path: Path) -> None:
    async with engine() as chat, WebhookSink() as human, Alertmanager(tmp_path, human.url) as member:
        flag = config(tmp_path, chat)
        with RunningDaemon(tmp_path, flag) as daemon:
            await asyncio.to_thread(daemon.wait_for_series, "pinchpoint_engine_up", 1.0)
            assert await asyncio.to_thread(daemon.series, "pinchpoint_alerts_firing") == []
            config(tmp_path, chat, member.url)
            daemon.hang_up()
            await human.wait_for("PinchpointWatchdog", "firing")
            config(tmp_path, chat, member.url, labels={"source": "mine"})
            daemon.hang_up()
            await until(lambda: "configuration not reloaded" in daemon.log, "the mistake to be told")
            assert await asyncio.to_thread(daemon.series, "pinchpoint_alerts_firing") == [1.0]
            config(tmp_path, chat)
            daemon.hang_up()
            gone = lambda: daemon.series("pinchpoint_alerts_firing") == []  # noqa: E731
            await asyncio.to_thread(daemon.wait_for, gone, "it to be off")
