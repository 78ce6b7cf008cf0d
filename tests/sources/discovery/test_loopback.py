"""Engines on loopback are found among real sockets that are something else."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic

import aiohttp
import pytest
from aiohttp import web

from pinchpoint.daemon.finding import AGAIN, QUESTIONS
from pinchpoint.sources.discovery import DiscoverySettings, Listener, LoopbackFinder, find_engines
from pinchpoint.sources.discovery.loopback import FORGET_SECONDS, NOT_HTTP, listeners
from pinchpoint.sources.http import HttpClient
from tests.fakes.pages import Page, serving
from tests.sources.discovery.listing import Clock, names


@asynccontextmanager
async def server(body: bytes, status: int = 200, location: str | None = None) -> AsyncIterator[int]:
    """A loopback server whose /metrics answers ``body``."""

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=body, status=status, headers={"Location": location} if location else {})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def found(*ports: int, address: str = "127.0.0.1", own: tuple[int, ...] = ()) -> list[int]:
    async with aiohttp.ClientSession() as session:
        targets = await find_engines(
            session, QUESTIONS, own_ports=own, listening=lambda: [Listener(p, address) for p in ports]
        )
    return [int(target.url.rsplit(":", 1)[1]) for target in targets]


VLLM = b"python_info 1\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"


async def test_a_vllm_server_is_found_by_its_listening_socket_and_named_after_its_port():
    async with server(VLLM) as port, aiohttp.ClientSession() as session:
        targets = await find_engines(session, QUESTIONS, listening=lambda: [s for s in listeners() if s.port == port])
    (target,) = targets
    assert (target.engine, target.url, target.found_by) == (f"vllm-{port}", f"http://127.0.0.1:{port}", "loopback")


@pytest.mark.parametrize(
    "body",
    [VLLM, b"# HELP vllm:x y\n", b"vllm_num_requests_running 1\n", b"a 1\nray_vllm:x 1\n", b"z 1\n" * 50_000 + VLLM],
)
async def test_any_spelling_of_vllm_is_recognised(body: bytes):
    async with server(body) as port:
        assert await found(port, address="0.0.0.0") == [port]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"up 1\n", 200),
        (b"<html>vllm:</html>", 200),
        (b'x{y="vllm:"} 1\n', 200),
        (VLLM, 500),
        (b"z 1\n" * 400_000 + VLLM, 200),
    ],
)
async def test_anything_else_is_left_alone(body: bytes, status: int):
    async with server(body, status) as port:
        assert await found(port) == []


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("tests/data/engine-metrics/sglang-0.5.23.prom", "sglang"),
        ("tests/data/engine-metrics/lmdeploy-main-2026-08-21.prom", "lmdeploy"),
        ("tests/data/vllm-real/c-moderate/010.prom", "vllm"),
    ],
)
async def test_every_kind_of_engine_is_found_by_what_it_exposes(file: str, kind: str):
    async with server(Path(file).read_bytes()) as port, aiohttp.ClientSession() as session:
        (target,) = await find_engines(session, QUESTIONS, listening=lambda: [Listener(port, "127.0.0.1")])
    assert (target.engine, target.facts.kind, target.metrics_path) == (f"{kind}-{port}", kind, "/metrics")


async def test_an_engine_is_told_before_an_endless_body_ends():
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            await response.write(VLLM + b"z 1\n" * 5000)
            await asyncio.sleep(30)
        return response

    app = web.Application()
    app.router.add_get("/metrics", endless)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    assert await found(port) == [port]
    await runner.cleanup()


async def test_a_redirect_is_not_followed():
    async with server(VLLM) as port, server(b"", 307, f"http://127.0.0.1:{port}/metrics") as other:
        assert await found(other) == []


async def test_own_ports_other_interfaces_and_databases_are_not_asked():
    async with server(VLLM) as port:
        assert await found(port, own=(port,)) == []
        assert await found(port, address="192.0.2.7") == []
    assert await found(*NOT_HTTP) == []


async def test_a_socket_that_never_answers_costs_a_second_and_hides_nobody():
    async with AsyncExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(6)]
        port = await stack.enter_async_context(server(VLLM))
        begun = monotonic()
        assert await found(port, *(s.getsockname()[1] for s in silent)) == [port]
        assert monotonic() - begun < 3


async def test_an_engine_on_both_address_families_is_one():
    async with server(VLLM) as port, aiohttp.ClientSession() as session:
        both = [Listener(port, "::"), Listener(port, "0.0.0.0")]
        assert len(await find_engines(session, QUESTIONS, listening=lambda: both)) == 1


async def test_looking_for_sockets_does_not_block_the_loop():
    def slow() -> list[Listener]:
        import time

        time.sleep(0.2)
        return []

    async with aiohttp.ClientSession() as session:
        task = asyncio.create_task(find_engines(session, QUESTIONS, listening=slow))
        begun = monotonic()
        await asyncio.sleep(0.01)
        assert monotonic() - begun < 0.15
        assert await task == ()


@pytest.mark.parametrize(
    ("loopback", "configured", "looks"), [(None, 0, True), (None, 1, False), (True, 1, True), (False, 0, False)]
)
def test_it_looks_while_no_engine_is_configured_or_when_told(loopback: bool | None, configured: int, looks: bool):
    assert DiscoverySettings(loopback=loopback).looks_on_loopback(configured) is looks


async def test_an_engine_that_stops_listening_is_kept_for_ten_minutes_so_that_it_can_be_paged_on():
    clock = Clock()
    async with HttpClient() as client, AsyncExitStack() as stack:
        port = await stack.enter_async_context(server(VLLM))
        finder = LoopbackFinder(
            client,
            30,
            clock,
            own_ports=lambda: (),
            questions=QUESTIONS,
            listening=lambda: [Listener(port, "127.0.0.1")],
        )
        assert names((await finder.find()).targets) == [f"vllm-{port}"]
        await stack.aclose()
        clock.now += FORGET_SECONDS
        assert names((await finder.find()).targets) == [f"vllm-{port}"]
        clock.now += 1
        assert (await finder.find()).targets == ()


async def test_a_llama_server_that_is_known_is_looked_at_without_being_kept_awake():
    props = Page('{"default_generation_settings":{},"is_sleeping":true}', content_type="application/json")
    metrics = Page("llamacpp:requests_processing 0\n")
    async with serving(props=props, metrics=metrics) as pages, HttpClient() as client:
        port = int(pages.url.rpartition(":")[2])
        finder = LoopbackFinder(
            client, 30, Clock(), own_ports=lambda: (), questions=QUESTIONS, again=AGAIN,
            listening=lambda: [Listener(port, "127.0.0.1")],
        )  # fmt: skip
        first = (await finder.find()).targets
        assert names(first) == [f"llamacpp-{port}"]
        for _ in range(3):
            assert (await finder.find()).targets == first
        assert pages.asked == ["/metrics", "/props", "/props", "/props"]
        del pages.pages["/props"]
        pages.pages["/metrics"] = Page(VLLM)
        assert names((await finder.find()).targets) == [f"vllm-{port}"]  # somebody else took its port


async def test_another_engine_on_the_same_port_takes_the_place_of_the_one_before():
    async with HttpClient() as client, AsyncExitStack() as stack:
        bodies = [VLLM, b"sglang:num_running_reqs 1\n"]

        async def metrics(_: web.Request) -> web.Response:
            return web.Response(body=bodies[0])

        app = web.Application()
        app.router.add_get("/metrics", metrics)
        runner = web.AppRunner(app)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        finder = LoopbackFinder(
            client, 30, Clock(), own_ports=lambda: (), questions=QUESTIONS,
            listening=lambda: [Listener(port, "127.0.0.1")],
        )  # fmt: skip
        await finder.find()
        assert names((await finder.find()).targets) == [f"vllm-{port}"]
        bodies.pop(0)
        assert names((await finder.find()).targets) == [f"sglang-{port}"]


async def test_an_exposition_at_another_path_is_found_there():
    async def answer(request: web.Request) -> web.Response:
        body = b"trtllm_request_success_total 1\n" if request.path.startswith("/prometheus") else b"[]"
        return web.Response(body=body)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    async with aiohttp.ClientSession() as session:
        (target,) = await find_engines(session, QUESTIONS, listening=lambda: [Listener(port, "127.0.0.1")])
    assert (target.engine, target.metrics_path) == (f"trtllm-{port}", "/prometheus/metrics")
    await runner.cleanup()
