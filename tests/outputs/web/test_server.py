"""The server on real sockets."""

import asyncio
import gzip
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession, TCPConnector
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser
from prometheus_client.parser import text_string_to_metric_families

from pinchpoint.outputs.exposition import Renderer
from pinchpoint.outputs.published import OPENMETRICS, TEXT, Published, Rendered
from pinchpoint.outputs.web import ListenError, WebServer, WebSettings, endpoints
from tests.outputs.exposition import scenes as exposition_scenes
from tests.outputs.web import scenes


@asynccontextmanager
async def serving(
    shown: Published | None = None,
    *,
    published: Callable[[], Published | None] | None = None,
    reload_error: str | None = None,
    **settings: object,
) -> AsyncIterator[tuple[ClientSession, WebServer]]:
    async def reload() -> str | None:
        return reload_error

    newest = published or (lambda: shown)
    chosen = WebSettings.model_validate({"listen_address": "127.0.0.1:0", **settings})
    server = WebServer(chosen, newest, reload)
    await server.start()
    connector = TCPConnector(limit=0)
    try:
        async with ClientSession(server.addresses[0], connector=connector, auto_decompress=False) as client:
            yield client, server
    finally:
        await server.stop()


def healthy() -> Published:
    return scenes.published(scenes.healthy(time.time()))


async def test_prometheus_gets_openmetrics_and_everybody_else_text() -> None:
    published = healthy()
    prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;version=0.0.4;q=0.5"
    async with serving(published) as (client, _):
        for accept, body, content_type in (
            (prometheus, published.openmetrics.plain, OPENMETRICS),
            ("*/*", published.text.plain, TEXT),
            ("text/plain, application/openmetrics-text", published.text.plain, TEXT),
            ("application/openmetrics-text; version=0.0.1", published.text.plain, TEXT),
        ):
            answer = await client.get("/metrics", headers={"Accept": accept, "Accept-Encoding": "identity"})
            assert (answer.status, await answer.read()) == (200, body)
            assert answer.headers["Content-Type"] == content_type


async def test_a_client_that_takes_gzip_gets_the_gzipped_bytes_as_they_are() -> None:
    published = healthy()
    async with serving(published) as (client, _):
        answer = await client.get("/metrics", headers={"Accept-Encoding": "gzip"})
        assert answer.headers["Content-Encoding"] == "gzip"
        assert await answer.read() == published.text.gzipped()
        refused = await client.get("/metrics", headers={"Accept-Encoding": "gzip;q=0, identity"})
        assert "Content-Encoding" not in refused.headers


async def test_head_tells_the_length_and_sends_no_body() -> None:
    published = healthy()
    async with serving(published) as (client, _):
        for path in ("/metrics", "/", "/-/healthy", "/api/v1/status"):
            answer = await client.head(path, headers={"Accept-Encoding": "identity"})
            assert answer.status == 200
            assert int(answer.headers["Content-Length"]) > 0
            assert await answer.read() == b""


async def test_before_the_first_tick_only_the_page_and_healthy_answer_200() -> None:
    async with serving(None) as (client, _):
        for path in ("/metrics", "/api/v1/status", "/api/v1/diagnosis", "/probe?target=x", "/-/ready"):
            answer = await client.get(path)
            assert answer.status == 503
            assert int(answer.headers["Retry-After"]) >= 1
        assert (await client.get("/-/healthy")).status == 200
        page = await client.get("/")
        assert page.status == 200
        assert "Starting" in await page.text()


async def test_the_first_tick_makes_it_ready() -> None:
    held: list[Published] = []
    async with serving(published=lambda: held[-1] if held else None) as (client, _):
        assert (await client.get("/-/ready")).status == 503
        held.append(healthy())
        assert (await client.get("/-/ready")).status == 200
        assert (await client.get("/metrics")).status == 200


async def test_two_hundred_parallel_scrapes_are_all_answered() -> None:
    async with serving(healthy(), max_requests=200) as (client, _):
        answers = await asyncio.gather(*(client.get("/metrics") for _ in range(200)))
        assert [answer.status for answer in answers] == [200] * 200


async def test_a_scraper_that_does_not_read_holds_its_place_only_until_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoints, "SCRAPE_SECONDS", 1.0)
    big = Rendered(b"x" * 50_000_000)
    published = Published(scenes.healthy(time.time()), big, big)
    async with serving(published, max_requests=1) as (client, server):
        host, port = server.addresses[0].removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readexactly(12)
        refused = await client.get("/metrics")
        assert refused.status == 503
        assert "web.max_requests" in await refused.text()
        await asyncio.sleep(1.3)
        answer = await client.get("/metrics")
        assert answer.status == 200
        answer.close()
        writer.close()


async def test_a_taken_port_is_one_line_with_the_address_the_cause_and_the_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ListenError) as caught:
            async with serving(None, listen_address=address):
                pass
    message = str(caught.value)
    assert address in message
    assert "taken" in message
    assert "choose another" in message
    assert "\n" not in message


async def test_every_interface_means_ipv4_too_and_ipv6_where_there_is_one() -> None:
    async with serving(healthy(), listen_address=":0") as (client, server):
        port = server.addresses[0].rpartition(":")[2]
        assert (await client.get(f"http://127.0.0.1:{port}/-/healthy")).status == 200
        if socket.has_dualstack_ipv6():
            assert (await client.get(f"http://[::1]:{port}/-/healthy")).status == 200


async def test_stop_closes_idle_connections_within_a_second_and_frees_the_port() -> None:
    async with serving(healthy()) as (client, server):
        address = server.addresses[0].removeprefix("http://")
        await (await client.get("/metrics")).read()
        host, port = address.split(":")
        idle_reader, idle_writer = await asyncio.open_connection(host, int(port))
        began = time.monotonic()
        await server.stop()
        assert time.monotonic() - began < 1.0
        assert await asyncio.wait_for(idle_reader.read(), 1.0) == b""
        idle_writer.close()
        async with serving(healthy(), listen_address=address):
            pass


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/static/page.js", "/nothing", "/-/healthy"])
async def test_every_answer_bears_the_security_headers(path: str) -> None:
    async with serving(healthy()) as (client, _):
        headers = (await client.get(path)).headers
        assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"


async def test_an_unknown_path_is_a_short_404_and_a_wrong_method_a_405() -> None:
    async with serving(healthy()) as (client, _):
        unknown = await client.get("/<script>")
        assert (unknown.status, await unknown.text()) == (404, "nothing here; / is the status page\n")
        assert (await client.post("/metrics")).status == 405
        assert (await client.get("/-/reload")).status == 405


async def test_reload_is_off_unless_allowed_and_the_answer_names_the_flag() -> None:
    async with serving(healthy()) as (client, _):
        answer = await client.post("/-/reload")
        assert answer.status == 403
        assert "--web.enable-lifecycle" in await answer.text()
    async with serving(healthy(), enable_lifecycle=True) as (client, _):
        assert (await client.post("/-/reload")).status == 200
    async with serving(healthy(), enable_lifecycle=True, reload_error="probes[0].url: no host") as (client, _):
        answer = await client.post("/-/reload")
        assert answer.status == 500
        assert "probes[0].url: no host" in await answer.text()


JSON = {"Accept": "application/json"}


async def test_the_last_result_of_a_target_is_served_and_an_unknown_target_is_404() -> None:
    async with serving(scenes.published(scenes.full_node(time.time()))) as (client, _):
        result = await (await client.get("/probe?target=backup", headers=JSON)).json()
        assert (result["outcome"], result["placement"], result["ttft_seconds"]) == ("auth", "hosted", None)
        unknown = await client.get("/probe?target=http://169.254.169.254/")
        assert unknown.status == 404
        assert "backup, chat-local, openai" in await unknown.text()
        assert (await client.get("/probe")).status == 400


@pytest.mark.parametrize("target", ["hosted", 'a "b" \\ c\n'])
async def test_a_target_is_scraped_alone_in_either_format_with_what_the_whole_says_of_it(target: str) -> None:
    scene = exposition_scenes.full_scene()
    shown = scene.snapshot
    probes = tuple(replace(p, target=target) if p.target == "hosted" else p for p in shown.probes)
    totals = tuple(replace(t, target=target) if t.target == "hosted" else t for t in shown.probe_totals)
    snapshot = replace(shown, probes=probes, probe_totals=totals)
    scene = replace(scene, snapshot=snapshot, unix_offset_seconds=time.time() - snapshot.at)
    text, openmetrics = Renderer().render(scene)
    path, plain = f"/probe?{urlencode({'target': target})}", {"Accept-Encoding": "identity"}
    async with serving(Published(scene, text, openmetrics)) as (client, _):
        alone = await (await client.get(path, headers=plain)).text()
        assert samples(text_string_to_metric_families(alone)) == {
            sample
            for sample in samples(text_string_to_metric_families(text.plain.decode()))
            if "probe_" in sample[0] and ("target", target.replace("\n", "")) in sample[1]
        }
        assert "pinchpoint_probe_spend_usd_total" in alone
        answer = await client.get(path, headers={**plain, "Accept": "application/openmetrics-text;version=1.0.0"})
        assert answer.headers["Content-Type"] == OPENMETRICS
        strict = openmetrics_parser.text_string_to_metric_families(await answer.text())
        assert {name for name, *_ in samples(strict)} == {
            name for name, *_ in samples(text_string_to_metric_families(alone))
        }


def samples(families: Iterable[Metric]) -> set[tuple[str, frozenset[tuple[str, str]], float]]:
    return {(s.name, frozenset(s.labels.items()), s.value) for family in families for s in family.samples}


async def test_a_target_that_was_not_probed_yet_has_its_counters_and_no_result() -> None:
    scene = exposition_scenes.full_scene()
    snapshot = replace(scene.snapshot, probes=())
    scene = replace(scene, snapshot=snapshot, unix_offset_seconds=time.time() - snapshot.at)
    async with serving(Published(scene, *Renderer().render(scene))) as (client, _):
        body = await (await client.get("/probe?target=chat", headers={"Accept-Encoding": "identity"})).text()
        assert "pinchpoint_probe_requests_total" in body
        assert "pinchpoint_probe_up" not in body
        assert (await client.get("/probe?target=chat", headers=JSON)).status == 503


async def test_the_page_is_rendered_once_per_tick_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[object] = []
    original = endpoints.page

    def counted(scene: scenes.Scene | None, *arguments: object) -> str:
        rendered.append(scene)
        return original(scene, *arguments)

    monkeypatch.setattr(endpoints, "page", counted)
    held = [healthy()]
    async with serving(published=lambda: held[-1]) as (client, _):
        answers = await asyncio.gather(*(client.get("/") for _ in range(20)))
        bodies = [await answer.read() for answer in answers]
        assert len(rendered) == 1
        assert len(set(bodies)) == 1
        held.append(scenes.published(scenes.kv_full(time.time())))
        assert b"Out of KV cache" in gzip.decompress(await (await client.get("/")).read())
        assert len(rendered) == 2


async def test_a_tick_that_stands_still_is_said_on_the_page() -> None:
    async with serving(scenes.published(scenes.healthy(time.time() - 42))) as (client, _):
        text = await (await client.get("/", headers={"Accept-Encoding": "identity"})).text()
        assert "old: pinchpoint&#x27;s tick stands still" in text


async def test_the_assets_the_page_names_are_there_and_may_be_kept() -> None:
    async with serving(healthy()) as (client, _):
        text = await (await client.get("/", headers={"Accept-Encoding": "identity"})).text()
        for mark in ('href="static/page.css?v=', 'src="static/page.js?v=', 'href="favicon.svg'):
            path = text[text.index(mark) :].split('"')[1]
            answer = await client.get(f"/{path}")
            assert answer.status == 200
            assert len(await answer.read()) > 100
            if "?v=" in path:
                assert "immutable" in answer.headers["Cache-Control"]


async def test_the_metrics_path_can_be_moved_and_the_page_links_there() -> None:
    async with serving(healthy(), telemetry_path="/gpu/metrics") as (client, _):
        assert (await client.get("/gpu/metrics")).status == 200
        assert (await client.get("/metrics")).status == 404
        assert 'href="gpu/metrics"' in await (await client.get("/", headers={"Accept-Encoding": "identity"})).text()


async def test_a_page_reader_that_does_not_read_is_cut_off_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "SCRAPE_SECONDS", 0.3)
    monkeypatch.setattr(endpoints, "page", lambda *_: "x" * 50_000_000)
    async with serving(healthy()) as (_, server):
        host, port = server.addresses[0].removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n")
        await reader.readexactly(12)
        await asyncio.sleep(0.6)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(50_000_000), 10)
        writer.close()


async def test_ticks_that_have_stopped_make_the_scrape_fail_instead_of_repeating_old_figures() -> None:
    async with serving(scenes.published(scenes.healthy(time.time() - 60))) as (client, _):
        answer = await client.get("/metrics")
        assert answer.status == 503
        assert "the newest tick is 60 s old" in await answer.text()
        assert "stands still" in gzip.decompress(await (await client.get("/")).read()).decode()


async def test_what_is_no_http_gets_its_400_and_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(healthy()) as (_, server):
        host, port = server.addresses[0].removeprefix("http://").split(":")
        for nonsense in (
            b"\x16\x03\x01 hello\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        ):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(nonsense)
            assert (await reader.readline()).endswith(b"400 Bad Request\r\n")
            writer.close()
    assert [record for record in caplog.records if record.name == "aiohttp.server"] == []
