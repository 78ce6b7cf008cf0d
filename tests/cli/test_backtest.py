"""``pinchpoint rules backtest`` against a real Prometheus and VictoriaMetrics with a past, and against bad servers."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from typer.testing import CliRunner, Result

from pinchpoint.alerting import ALERTS
from pinchpoint.cli import app
from tests.fakes.remote_write import WritablePrometheus, WritableVictoriaMetrics, Written

KV = next(alert for alert in ALERTS if alert.name == "PinchpointKVCacheHigh")
MINUTES = 3000  # 50 hours: at an evaluation every 15 s more points than a server answers at once
TARGET = {"job": "pinchpoint", "instance": "node:10770"}


async def backtest(*arguments: object) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, app, ["rules", "backtest", *map(str, arguments)])


def past(end: int) -> list[Written]:
    """Every minute until ``end``: an engine whose KV cache is full for a while now and then; one that never is."""
    minutes = [(number, (end - 60 * (MINUTES - number)) * 1000) for number in range(MINUTES)]
    chat = [(at, 0.95 if is_full(number) else 0.5) for number, at in minutes]
    return [
        ({"__name__": "pinchpoint_build_info", "version": "1", **TARGET}, [(at, 1.0) for _, at in minutes]),
        (kv("chat"), chat),
        (kv("code"), [(at, 0.9) for _, at in minutes]),
    ]


FULL = (range(100, 103), range(500, 520), range(600, 630), range(2990, 3000))  # the first is too short to fire


def is_full(minute: int) -> bool:
    return any(minute in each for each in FULL)


def kv(engine: str) -> Mapping[str, str]:
    return {"__name__": "pinchpoint_engine_kv_cache_usage_ratio", "engine": engine, "replica": "0", **TARGET}


def expected(end: int) -> list[tuple[float, float | None]]:
    times = [
        (end - 60 * (MINUTES - each.start) + KV.for_seconds, end - 60 * (MINUTES - each.stop)) for each in FULL[1:]
    ]
    return [(fired, ended + KV.keep_firing_for_seconds if ended < end else None) for fired, ended in times]


@pytest.mark.parametrize("server", [WritablePrometheus, WritableVictoriaMetrics])
async def test_it_tells_each_time_that_an_alert_would_have_fired(tmp_path: Path, server: Callable[[Path], Any]) -> None:
    end = int(time.time()) // 60 * 60 - 60
    async with server(tmp_path) as database:
        await database.write(past(end))
        chosen = ("--alert", "PinchpointKVCacheHigh", "--alert", "PinchpointGPULost")
        asked = ("--prometheus", database.url, "--since", "60h", "--interval", "15s", *chosen)
        done = await backtest(*asked, "--json")
        assert (done.exit_code, done.stderr) == (0, "")
        told = json.loads(done.stdout)
        page, lost = sorted(told["alerts"], key=lambda each: each["times"], reverse=True)
        assert page["data_share"] == pytest.approx({"pinchpoint_engine_kv_cache_usage_ratio": 1.0}, abs=0.01)
        assert {dict(each["labels"])["engine"] for each in page["firings"]} == {"chat"}
        for each, (fired, ended) in zip(page["firings"], expected(end), strict=True):
            assert each["fired"] == pytest.approx(fired, abs=15)
            assert each["ended"] == (None if ended is None else pytest.approx(ended, abs=75))
        assert lost["times"] == 0
        assert set(lost["data_share"].values()) == {0}
        # Evaluation begins when pinchpoint was first seen, not when it was asked from.
        assert told["start"] == pytest.approx(end - 60 * MINUTES, abs=15)
        assert told["seen_share"] == pytest.approx(1, abs=0.01)
        table = await backtest(*asked)
        assert table.exit_code == 0
        (line,) = [line for line in table.stdout.splitlines() if line.startswith("PinchpointKVCacheHigh  ")]
        assert line.split()[1:3] == ["critical", "3"]
        assert "engine=chat" in table.stdout
        assert "never seen" in table.stdout


async def test_a_server_without_pinchpoint_says_so(tmp_path: Path) -> None:
    async with WritablePrometheus(tmp_path) as database:
        done = await backtest("--prometheus", database.url, "--since", "1h")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "has no pinchpoint_build_info in the last 1h; does it scrape pinchpoint?" in done.stderr


@asynccontextmanager
async def serving(answer: Callable[[web.Request], tuple[int, Any]]):
    """A server that is no Prometheus."""

    async def handle(request: web.Request) -> web.Response:
        status, body = answer(request)
        return web.json_response(body, status=status)

    application = web.Application()
    application.router.add_get("/prefix/api/v1/query_range", handle)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/prefix"
    await runner.cleanup()


def success(request: web.Request, **more: Any) -> tuple[int, Any]:
    series = {"metric": {}, "values": [[float(request.query["start"]), "1"]]}
    return 200, {"status": "success", "data": {"resultType": "matrix", "result": [series]}, **more}


async def test_it_is_let_in_as_the_site_wants_and_the_credentials_are_not_printed(tmp_path: Path) -> None:
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("s3cret\n")
    password.write_text("s3cret\n")
    seen = []

    def answer(request: web.Request) -> tuple[int, Any]:
        seen.append((request.headers.get("Authorization"), request.headers.get("X-Scope-OrgID")))
        return (200, success(request)[1]) if request.headers.get("Authorization") else (401, {})

    async with serving(answer) as url:
        asked = ("--prometheus", url, "--since", "1h", "--alert", KV.name)
        refused = await backtest(*asked)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert "HTTP 401" in refused.stderr
        assert "credentials" in refused.stderr
        assert (await backtest(*asked, "--bearer-token-file", token, "--tenant", "ml")).exit_code == 0
        assert seen[-1] == ("Bearer s3cret", "ml")
        done = await backtest(*asked, "--username", "me", "--password-file", password)
        assert done.exit_code == 0
        assert seen[-1] == ("Basic bWU6czNjcmV0", None)
        assert "s3cret" not in refused.output + done.output


async def test_warnings_are_told_and_an_alert_without_an_answer_is_bad_news() -> None:
    def answer(request: web.Request) -> tuple[int, Any]:
        if "kv_cache_usage_ratio > " in request.query["query"]:
            return 422, {"status": "error", "errorType": "execution", "error": "too many\nsamples"}
        return success(request, warnings=["one store is away"])

    async with serving(answer) as url:
        done = await backtest("--prometheus", url, "--since", "1h", "--json")
    assert done.exit_code == 1
    assert f"{KV.name}: HTTP 422, too many samples" in done.stderr
    assert done.stderr.count("warns: one store is away") == 1
    told = json.loads(done.stdout)
    assert told["warnings"] == ["one store is away"]
    assert next(each["alert"] for each in told["alerts"] if "failure" in each) == KV.name


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([], "no JSON of a Prometheus"),
        ({"status": "success", "data": {"result": [{"metric": [], "values": 3}]}}, "is this a Prometheus?"),
        ({"status": "success", "data": {"result": [{"metric": {}, "values": [[1, "x"]]}]}}, "is this a Prometheus?"),
    ],
)
async def test_what_is_no_prometheus_is_one_line(body: Any, words: str) -> None:
    async with serving(lambda _: (200, body)) as url:
        done = await backtest("--prometheus", url)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--since", "3"), "--since: '3' is no duration; write it like 30d, 12h or 1h30m"),
        (("--interval", "0s"), "--interval: must be more than 0"),
        (("--alert", "KV"), "--alert KV: is none of Pinchpoint"),
        (("--password-file", "p"), "--password-file is given without --username; give both"),
        (("--prometheus", "http://a:b@c"), "holds credentials"),
    ],
)
async def test_wrong_usage_is_one_line(arguments: tuple[str, ...], words: str) -> None:
    done = await backtest("--prometheus", "http://127.0.0.1:9", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert words in line


def test_the_rules_are_written_without_a_command_as_ever(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["rules", str(tmp_path)])
    assert done.exit_code == 0
    assert (tmp_path / "pinchpoint.rules.yml").read_text() == Path("alerts/pinchpoint.rules.yml").read_text()
    assert "backtest" in CliRunner().invoke(app, ["rules", "--help"]).stdout
