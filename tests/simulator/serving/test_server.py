"""A simulated engine over real HTTP: requests really join the batch, errors are those of the real server."""

import asyncio
import json
import time

import aiohttp
import pytest

from pinchpoint.simulator import EngineServer, Service, Workload
from pinchpoint.simulator.world import Gateway, Leak, Stall
from tests.simulator.engine.small import until
from tests.simulator.node.worlds import small_world

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
HELLO = {"model": MODEL, "messages": [{"role": "user", "content": "hello there"}], "max_tokens": 12}


class Served:
    """A service that nobody else asks behind a server, its time running ``speed`` times as fast as ours."""

    def __init__(self, speed=20.0, api_key="", max_num_seqs=256, **around):
        engine = {"max_model_len": 1024, "max_num_seqs": max_num_seqs}
        self.service = Service(small_world(engine=engine, workload=Workload(), **around))
        (self.engine,) = self.service.engines
        self.server = EngineServer(self.service, self.advance, unix_epoch=1.8e9, api_key=api_key)
        self.speed = speed

    def advance(self):
        self.service.advance_to((time.monotonic() - self.began) * self.speed)

    async def pace(self):
        while True:
            self.advance()
            await asyncio.sleep(0.001)

    async def __aenter__(self):
        self.began = time.monotonic()
        self.url = await self.server.start()
        self.http = aiohttp.ClientSession(self.url, timeout=aiohttp.ClientTimeout(total=10))
        self.pacer = asyncio.create_task(self.pace())
        return self

    async def __aexit__(self, *_):
        self.pacer.cancel()
        await self.http.close()
        await self.server.stop()

    async def chat(self, body=None, **more):
        async with self.http.post("/v1/chat/completions", json={**(body or HELLO), **more}) as response:
            return response.status, await response.json()


def events(text):
    return [line.removeprefix("data: ") for line in text.split("\n\n") if line]


async def test_a_stream_is_a_role_then_tokens_then_usage_then_done():
    async with Served() as served:
        body = {**HELLO, "stream": True, "stream_options": {"include_usage": True}}
        async with served.http.post("/v1/chat/completions", json=body) as response:
            assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            *chunks, done = events(await response.text())
    assert done == "[DONE]"
    role, *tokens, last = [json.loads(chunk) for chunk in chunks]
    assert role["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert len(tokens) == 12
    assert all(token["choices"][0]["delta"]["content"] for token in tokens)
    assert [token["choices"][0]["finish_reason"] for token in tokens] == [None] * 11 + ["length"]
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 12
    assert served.engine.ledger.generation_tokens == 12
    assert served.engine.ledger.prompt_tokens == last["usage"]["prompt_tokens"]


async def test_headers_come_at_once_and_tokens_at_their_time():
    async with Served(speed=1.0) as served:
        began = time.monotonic()
        async with served.http.post(
            "/v1/chat/completions", json={**HELLO, "max_tokens": 40, "stream": True}
        ) as response:
            arrivals = [time.monotonic() - began async for line in response.content if line.startswith(b"data: {")]
    simulated = served.engine.ledger.decode.sum
    assert arrivals[-1] - arrivals[0] == pytest.approx(simulated, rel=0.5, abs=0.05)
    assert simulated > 0.15


async def test_without_stream_the_whole_answer_comes_at_the_end():
    async with Served() as served:
        status, body = await served.chat()
    assert status == 200
    assert body["object"] == "chat.completion"
    assert body["usage"]["completion_tokens"] == 12
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["choices"][0]["message"]["content"]


async def test_without_max_tokens_the_model_stops_by_itself():
    async with Served(speed=200) as served:
        status, body = await served.chat({key: HELLO[key] for key in ("model", "messages")})
    assert status == 200
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_requests_share_the_batch_and_queue_for_slots():
    async with Served(max_num_seqs=2) as served:
        calls = [asyncio.create_task(served.chat(max_tokens=400)) for _ in range(5)]
        await until(lambda: (served.engine.running, served.engine.waiting) == (2, 3))
        assert {status for status, _ in await asyncio.gather(*calls)} == {200}


async def test_a_client_that_hangs_up_frees_its_blocks():
    async with Served(speed=1.0) as served:
        response = await served.http.post("/v1/chat/completions", json={**HELLO, "max_tokens": 900, "stream": True})
        await response.content.readline()
        await until(lambda: served.engine.running == 1)
        response.close()
        await until(lambda: served.engine.running == 0)
        assert served.engine.batcher.pool.usage_ratio == 0.0
        assert sum(served.engine.ledger.success.values()) == 0


@pytest.mark.parametrize(
    ("change", "status", "kind", "words"),
    [
        ({"model": "nope"}, 404, "NotFoundError", "The model `nope` does not exist."),
        ({"messages": []}, 400, "BadRequestError", "empty conversation"),
        ({"messages": None}, 400, "Bad Request", "body.messages"),
        ({"messages": "hi"}, 400, "Bad Request", "body.messages"),
        ({"max_tokens": 0}, 400, "BadRequestError", "max_tokens must be at least 1, got 0."),
        ({"max_tokens": "many"}, 400, "Bad Request", "int_parsing"),
        ({"max_tokens": 5000}, 400, "BadRequestError", "cannot be greater than max_model_len=1024"),
        ({"stream_options": {"include_usage": True}}, 400, "BadRequestError", "Stream options can only be defined"),
        ({"messages": [{"role": "user", "content": "word " * 4000}]}, 400, "BadRequestError", "at least 1025 input"),
    ],
)
async def test_a_bad_request_is_refused_in_words(change, status, kind, words):
    async with Served() as served:
        answered, body = await served.chat(**change)
    assert answered == body["error"]["code"] == status
    assert body["error"]["type"] == kind
    assert words in body["error"]["message"]
    assert served.engine.ledger.prompt_tokens == 0


@pytest.mark.parametrize("raw", [b'{"model": ', b"[]", b"[" * 100_000, b"\xff\xfe", b""])
async def test_a_body_that_is_no_json_object_is_a_400(raw):
    async with Served() as served:
        headers = {"Content-Type": "application/json"}
        async with served.http.post("/v1/chat/completions", data=raw, headers=headers) as response:
            assert response.status == 400
            assert (await response.json())["error"]["type"] == "Bad Request"


async def test_unknown_paths_and_methods_answer_like_the_router():
    async with Served() as served:
        async with served.http.get("/v1/nope") as response:
            assert (response.status, await response.json()) == (404, {"detail": "Not Found"})
        async with served.http.get("/v1/chat/completions") as response:
            assert (response.status, await response.json()) == (405, {"detail": "Method Not Allowed"})
            assert response.headers["Allow"] == "POST"


async def test_the_api_key_guards_v1_and_nothing_else():
    async with Served(api_key="sk-right") as served:
        for headers in ({}, {"Authorization": "Bearer nope"}, {"Authorization": "Basic abc"}):
            async with served.http.get("/v1/models", headers=headers) as response:
                assert (response.status, await response.json()) == (401, {"error": "Unauthorized"})
        async with served.http.get("/v1/models", headers={"Authorization": "Bearer sk-right"}) as response:
            assert response.status == 200
        for path in ("/metrics", "/health", "/version"):
            async with served.http.get(path) as response:
                assert response.status == 200


async def test_metrics_health_version_and_models_answer():
    async with Served() as served:
        async with served.http.get("/metrics", headers={"Accept": "application/openmetrics-text"}) as response:
            assert response.headers["Content-Type"] == "text/plain; version=1.0.0; charset=utf-8"
            assert "vllm:num_requests_running" in await response.text()
        async with served.http.get("/health") as response:
            assert (response.status, await response.text()) == (200, "")
        async with served.http.get("/version") as response:
            assert await response.json() == {"version": "0.33.0"}
        async with served.http.get("/v1/models") as response:
            card = (await response.json())["data"][0]
            assert (card["id"], card["max_model_len"]) == (MODEL, 1024)


async def stream(served, **more):
    """When the chunks of a stream arrived, and the whole time, in simulated seconds."""
    began = time.monotonic()
    async with served.http.post("/v1/chat/completions", json={**HELLO, "stream": True, **more}) as response:
        arrivals = [time.monotonic() async for line in response.content if line.startswith(b"data: {")]
    return [(arrival - began) * served.speed for arrival in arrivals]


async def test_a_gateway_delays_the_chat_and_not_the_metrics():
    async with Served(speed=1.0, gateway=Gateway(delay_seconds=0.4, jitter_seconds=0.0)) as served:
        first, *_ = await stream(served)
        began = time.monotonic()
        async with served.http.get("/metrics") as response:
            assert response.status == 200
        assert time.monotonic() - began < 0.2
        ledger = served.engine.ledger
    assert 0.4 < first < 0.7
    assert ledger.ttft.sum < 0.2


async def test_a_gateway_that_buffers_gives_all_chunks_at_once():
    async with Served(speed=1.0, gateway=Gateway(buffers=True)) as served:
        first, *_, last = await stream(served, max_tokens=60)
        took = served.engine.ledger.e2e.sum
    assert last - first < 0.1 < took
    assert first > 0.9 * took


async def test_what_is_asked_of_a_stalled_engine_waits():
    async with Served(faults=(Stall(replica=0, at=0.0),)) as served:
        call = asyncio.create_task(served.chat())
        await until(lambda: served.service.now > 5.0)
        assert not call.done()
        call.cancel()
        async with served.http.get("/health") as response:
            assert response.status == 200


async def test_a_server_whose_engine_ends_resets_its_connections():
    async with Served(speed=5.0, faults=(Leak(gpu="0", bytes_per_second=3e9),)) as served:
        with pytest.raises(aiohttp.ClientError):
            await served.chat(max_tokens=900, ignore_eos=True)
        assert served.service.dead == {0}
        for path in ("/metrics", "/health", "/v1/models"):
            with pytest.raises(aiohttp.ClientConnectionError):
                await served.http.get(path)
