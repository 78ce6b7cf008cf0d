"""The scraper against real sockets that misbehave in every way an engine's port can."""

import asyncio
import gzip
import ssl
import subprocess
import zlib
from time import monotonic, thread_time

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from pinchpoint.snapshot import Absence, EngineReading, EngineTarget, Reason
from pinchpoint.sources.engine import EngineScraper, EngineSourceSettings
from pinchpoint.sources.http import HttpClient
from tests.sources.engine.servers import (
    BODY,
    PATIENT,
    QUICK,
    SMALL,
    Answer,
    RawAnswer,
    absence_of,
    hangs,
    http,
    memory_below,
    raw,
    reading_of,
    says,
    scraper,
    writes,
)


async def test_a_vllm_server_is_read_with_its_version():
    async with http(metrics=says(BODY), health=says(b""), version=says(b'{"version": "0.33.0"}')) as url:
        before = monotonic()
        reading = await reading_of(url)
    assert reading.replicas[0].requests_running == 60
    assert reading.facts.version == "0.33.0"
    assert before <= reading.at <= monotonic()


async def test_the_request_asks_for_plain_text_and_sends_the_token():
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return web.Response(body=SMALL)

    async with http(metrics=answer) as url, scraper(url, token="s3cret") as engine:
        await engine.scrape(monotonic)
    assert asked[0].headers["Accept"] == "text/plain; version=0.0.4"
    assert asked[0].headers["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(engine.target)


@pytest.mark.parametrize(
    ("answer", "reason", "remedy"),
    [
        (says(b"<html><body>It works!</body></html>"), Reason.NOT_EXPOSITION, "HTML"),
        (says(b'{"detail": "Not Found"}'), Reason.NOT_EXPOSITION, "JSON"),
        (says(b"", 401), Reason.UNAUTHORIZED, "bearer_token_file"),
        (says(b"", 403), Reason.UNAUTHORIZED, "bearer_token_file"),
        (says(b"", 404), Reason.HTTP_STATUS, "HTTP 404; check metrics_path"),
        (says(b"oh no", 500), Reason.HTTP_STATUS, "HTTP 500"),
        (says(BODY[:20_001]), Reason.TRUNCATED, "middle of a line"),
        (says(b"up 1\n"), Reason.METRICS_MISSING, "wrong port"),
        (says(SMALL, Content_Encoding="br"), Reason.NOT_EXPOSITION, "br"),
        (says(SMALL, Content_Encoding="gzip"), Reason.NOT_EXPOSITION, "inflated"),
        (says(gzip.compress(BODY)[:-900], Content_Encoding="gzip"), Reason.TRUNCATED, "ends early"),
        (
            says(b"", 307, Location="https://login.example/?token=x"),
            Reason.HTTP_STATUS,
            "redirects to https://login.example;",
        ),
        (says(b"", 307, Location="/metrics"), Reason.HTTP_STATUS, "more than 3 redirects"),
        (says(b"", 307, Location="http://["), Reason.HTTP_STATUS, "no URL"),
    ],
)
async def test_a_wrong_answer_is_an_absence_with_its_reason(answer: Answer, reason: Reason, remedy: str):
    async with http(metrics=answer) as url:
        absence = await absence_of(url)
    assert absence.reason is reason
    assert remedy in absence.detail


async def test_a_redirect_within_the_server_is_followed():
    async with http(metrics=says(b"", 307, Location="/metrics/final"), **{"metrics/final": says(BODY)}) as url:
        assert (await reading_of(url)).replicas[0].requests_running == 60


async def test_a_compressed_body_is_read_though_none_was_asked_for():
    async with http(metrics=says(zlib.compress(BODY), Content_Encoding="deflate")) as url:
        assert (await reading_of(url)).replicas[0].requests_running == 60


async def test_a_body_of_a_hundred_megabytes_is_left_early_and_costs_little_memory():
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        for _ in range(1600):
            writer.write(SMALL * 2340)
            await writer.drain()
            sent += 65_520

    async with raw(endless) as url:
        with memory_below(20 * 2**20):
            absence = await absence_of(url, EngineSourceSettings(timeout_seconds=10, max_body_bytes=2**20))
        assert sent < 20 * 2**20
    assert absence.reason is Reason.TOO_LARGE


async def test_a_gzip_bomb_is_not_inflated():
    bomb = gzip.compress(bytes(200 * 2**20), 1)
    settings = EngineSourceSettings(timeout_seconds=10, max_body_bytes=2**20)
    async with http(metrics=says(bomb, Content_Encoding="gzip")) as url:
        with memory_below(20 * 2**20):
            absence = await absence_of(url, settings)
    assert absence.reason is Reason.TOO_LARGE


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        hangs,
        writes(HEAD, SMALL, b"", pause=1),
        writes(b"HTTP/1.1 200 OK\r\nX-Slow: ", *[b"x"] * 100, pause=0.02),
        writes(HEAD, *[b"v"] * 100, pause=0.02),
    ],
    ids=["before the head", "in the body", "slow head", "slow body"],
)
async def test_a_socket_that_hangs_or_drips_costs_the_deadline_and_no_more(answer: RawAnswer):
    async with raw(answer) as url:
        begun = monotonic()
        absence = await absence_of(url, QUICK)
    assert absence.reason is Reason.TIMEOUT
    assert 0.25 < monotonic() - begun < 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (writes(HEAD, SMALL), Reason.TRUNCATED),
        (writes(), Reason.TRUNCATED),
        (writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nvllm:"), Reason.TRUNCATED),
        (writes(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), Reason.NOT_EXPOSITION),
        (writes(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"), Reason.NOT_EXPOSITION),
    ],
)
async def test_a_connection_that_breaks_or_is_no_http_is_told_apart(answer: RawAnswer, reason: Reason):
    async with raw(answer) as url:
        assert (await absence_of(url)).reason is reason


async def test_nobody_listening_is_refused(unused_tcp_port: int):
    absence = await absence_of(f"http://127.0.0.1:{unused_tcp_port}")
    assert absence.reason is Reason.CONNECT_REFUSED
    assert absence.detail.endswith("no connection; is the server running on this port? (connection refused)")


async def test_a_name_that_does_not_resolve_is_a_dns_failure():
    assert (await absence_of("http://engine.invalid:8000")).reason is Reason.DNS


@pytest.fixture(scope="module")
def self_signed(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    folder = tmp_path_factory.mktemp("tls")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=localhost"
    subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    return context


async def test_a_certificate_that_nobody_trusts_is_a_tls_failure(self_signed: ssl.SSLContext):
    async with raw(writes(), self_signed) as url:
        assert (await absence_of(url)).reason is Reason.TLS


async def test_https_to_a_plain_port_is_a_tls_failure():
    async with http(metrics=says()) as url:
        assert (await absence_of(url.replace("http:", "https:"))).reason is Reason.TLS


async def test_only_one_request_is_in_flight():
    at_once = most = 0

    async def counted(request: web.Request) -> web.Response:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        return web.Response(body=SMALL)

    async with http(metrics=counted, health=counted, version=counted) as url, scraper(url) as engine:
        results = await asyncio.gather(*(engine.scrape(monotonic) for _ in range(5)))
    assert most == 1
    assert all(isinstance(result, EngineReading) for result in results)


async def test_a_scrape_uses_one_connection():
    peers = set()

    async def counted(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=SMALL)

    async with http(metrics=counted, health=counted, version=counted) as url, scraper(url) as engine:
        for _ in range(3):
            assert isinstance(await engine.scrape(monotonic), EngineReading)
    assert len(peers) == 1


async def test_a_target_has_a_timeout_of_its_own():
    async with raw(hangs) as url, HttpClient() as client:
        engine = EngineScraper(EngineTarget(engine="chat", url=url, timeout_seconds=0.2), client, PATIENT)
        begun = monotonic()
        absence = await engine.scrape(monotonic)
    assert isinstance(absence, Absence)
    assert "within 0.2 s" in absence.detail
    assert monotonic() - begun < 2


async def test_compression_is_asked_for_where_the_operator_wants_it():
    asked: list[str] = []

    async def metrics(request: web.Request) -> web.Response:
        asked.append(request.headers["Accept-Encoding"])
        return web.Response(body=gzip.compress(BODY), headers={"Content-Encoding": "gzip"})

    async with http(metrics=metrics) as url:
        for settings in (PATIENT, EngineSourceSettings(timeout_seconds=10, gzip=True)):
            async with scraper(url, settings) as engine:
                assert isinstance(await engine.scrape(monotonic), EngineReading)
    assert asked == ["identity", "gzip"]


@pytest.mark.parametrize(
    ("answer", "scraped_at"),
    [
        (says(b"", 401), [0, 5, 15, 35, 75, 135, 195]),
        (says(b"", 404), [0, 5, 15, 35, 75, 135, 195]),
        (says(b"<html>"), [0, 5, 15, 35, 75, 135, 195]),
        (None, [0, 5, 15, 25, 35, 45, 55]),  # nobody listens: asking costs nothing, and a start is seen soon
    ],
)
async def test_a_target_that_fails_is_asked_less_often_whatever_its_reason(
    answer: Answer | None, scraped_at: list[int], unused_tcp_port: int
):
    asked: list[int] = []
    async with (
        http(**({"metrics": answer} if answer else {})) as url,
        scraper(url if answer else f"http://127.0.0.1:{unused_tcp_port}") as engine,
    ):
        for at in range(0, scraped_at[-1] + 1, 5):
            if engine.is_due(at):
                asked.append(at)
                assert isinstance(await engine.scrape(lambda at=at: float(at)), Absence)
    assert asked == scraped_at


async def test_a_target_that_is_back_is_asked_at_every_interval_again():
    statuses, asked = iter([500, 500, 500, 200, 200, 200]), []

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=SMALL, status=next(statuses))

    async with http(metrics=metrics) as url, scraper(url) as engine:
        for at in range(0, 50, 5):
            if engine.is_due(at):
                asked.append(at)
                await engine.scrape(lambda at=at: float(at))
    assert asked == [0, 5, 15, 35, 40, 45]


@pytest.mark.parametrize(("token", "says_what"), [("", "credentials are asked for"), ("t", "credentials are refused")])
async def test_a_401_says_whether_credentials_are_missing_or_wrong(token: str, says_what: str):
    async with http(metrics=says(b"", 401)) as url:
        assert says_what in (await absence_of(url, token=token)).detail


async def test_a_large_body_is_parsed_beside_the_event_loop():
    lines = "".join(f'vllm:num_requests_running{{engine="{i}",x="{"y" * 60}"}} 1\n' for i in range(40_000))
    async with http(metrics=says(lines.encode())) as url, scraper(url) as engine:
        task = asyncio.create_task(engine.scrape(monotonic))
        longest, before = 0.0, (began := monotonic())
        while not task.done():
            await asyncio.sleep(0.001)
            longest, before = max(longest, monotonic() - before), monotonic()
        lasted = before - began
        assert isinstance(await task, EngineReading)
    assert longest < lasted / 2


async def test_loss_and_return_are_each_logged_once():
    statuses = iter([200, 500, 500, 500, 200, 200])

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=SMALL, status=next(statuses))

    with capture_logs() as logs:
        async with http(metrics=metrics) as url, scraper(url) as engine:
            for _ in range(6):
                await engine.scrape(monotonic)
    assert [(entry["event"], entry["engine"]) for entry in logs] == [("engine lost", "chat"), ("engine back", "chat")]


async def test_cancelling_a_scrape_cancels_it_and_the_next_one_works():
    async with raw(hangs) as url, scraper(url) as engine:
        task = asyncio.create_task(engine.scrape(monotonic))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with http(metrics=says()) as url, scraper(url) as engine:
        assert isinstance(await engine.scrape(monotonic), EngineReading)


async def test_a_defect_of_ours_is_an_absence_and_one_log_entry_while_it_lasts():
    class Broken:
        async def fetch(self, *_: object, **__: object) -> None:
            raise RuntimeError("broken client")

    with capture_logs() as logs:
        engine = EngineScraper(EngineTarget(engine="chat", url="http://x"), Broken(), PATIENT)  # type: ignore[arg-type]
        result, _ = [await engine.scrape(monotonic) for _ in range(2)]
    assert isinstance(result, Absence)
    assert result.reason is Reason.ERROR
    assert [log["log_level"] for log in logs] == ["error", "warning"]


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example"])
async def test_a_name_that_can_not_be_one_is_a_dns_failure(host: str):
    async with scraper(f"http://{host}:8000", QUICK) as engine:
        outcome = await engine.scrape(monotonic)
    assert isinstance(outcome, Absence)
    assert outcome.reason is Reason.DNS


async def test_a_thousand_replicas_that_move_cost_the_loop_little():
    """Each was compared with each: seconds of the loop at every scrape."""
    moved = iter((1, 2))

    async def metrics(request: web.Request) -> web.Response:
        now = next(moved)
        return web.Response(
            text="".join(f'vllm:generation_tokens_total{{engine="{n}",model_name="m"}} {now}\n' for n in range(2000))
        )

    async with http(metrics=metrics) as url, scraper(url) as engine:
        await engine.scrape(monotonic)
        before = thread_time()  # of the loop's thread; a body of this size is parsed in another
        reading = await engine.scrape(monotonic)
        assert thread_time() - before < 0.25
    assert isinstance(reading, EngineReading)
    assert len(reading.replicas) == 1024
