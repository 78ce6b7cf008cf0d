"""What a prober learns of its server and keeps: the URL's shape, parameters, the model, the connection, the key."""

import asyncio
import gzip
import os
import tracemalloc
from pathlib import Path
from time import monotonic

import pytest

from pinchpoint.daemon.lag import LoopLag
from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe.roots import candidates
from tests.fakes.openai_server import (
    Answer,
    FakeOpenAI,
    FakeRequest,
    Wire,
    close,
    delta,
    end,
    head,
    replying,
    say,
    scripted,
    streaming,
)
from tests.sources.probe.conftest import MakeProber

MODELS = {"object": "list", "data": [{"id": "served-model"}, {"id": "other"}]}


def routed(routes: dict[str, Answer], otherwise: Answer) -> Answer:
    async def answer(request: FakeRequest, wire: Wire) -> None:
        await routes.get(request.path, otherwise)(request, wire)

    return answer


@pytest.mark.parametrize(
    ("url", "roots"),
    [
        ("http://h:8000", ("http://h:8000/v1", "http://h:8000")),
        ("http://h:8000/v1", ("http://h:8000/v1", "http://h:8000")),
        ("https://taotoken.net/api", ("https://taotoken.net/api/v1", "https://taotoken.net/api")),
        ("https://h/v1/chat/completions", ("https://h/v1", "https://h")),
        ("https://h/api/paas/v4", ("https://h/api/paas/v4", "https://h/api/paas")),
        ("https://h/v1beta/openai", ("https://h/v1beta/openai/v1", "https://h/v1beta/openai")),
    ],
)
def test_a_base_url_means_two_roots(url: str, roots: tuple[str, ...]):
    assert candidates(url) == roots


@pytest.mark.parametrize(
    "elsewhere", [replying(404, {"detail": "Not Found"}), replying(200, "<html>console</html>", "text/html")]
)
@pytest.mark.parametrize(
    ("base", "served"),
    [
        ("", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/api", "/api/chat/completions"),
        ("/api", "/api/v1/chat/completions"),
        ("/v1", "/chat/completions"),
    ],
)
async def test_both_url_shapes_find_the_api_and_the_one_that_works_is_remembered(
    base: str, served: str, elsewhere: Answer, prober_of: MakeProber
):
    async with FakeOpenAI(routed({served: streaming()}, elsewhere)) as server:
        prober = prober_of(server.url + base)
        assert (await prober.probe()).outcome is ProbeOutcome.OK
        before = len(server.requests)
        assert (await prober.probe()).outcome is ProbeOutcome.OK
    assert [request.path for request in server.requests[before:]] == [served]


async def test_an_api_at_neither_path_is_not_found_after_both_were_tried(prober_of: MakeProber):
    async with FakeOpenAI(replying(404, {"detail": "Not Found"})) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.NOT_FOUND
    assert [request.path for request in server.requests] == ["/v1/chat/completions", "/chat/completions"]


async def test_an_api_that_moves_is_found_again(prober_of: MakeProber):
    gone = replying(404, {"detail": "Not Found"})
    async with FakeOpenAI(routed({"/v1/chat/completions": streaming()}, gone)) as server:
        prober = prober_of(server.url)
        await prober.probe()
        server.answer = routed({"/chat/completions": streaming()}, gone)
        assert (await prober.probe()).outcome is ProbeOutcome.NOT_FOUND
        assert (await prober.probe()).outcome is ProbeOutcome.OK


def refusing(*fields: str) -> Answer:
    """A strict server: it refuses a request that holds one of these fields, and names it."""

    async def answer(request: FakeRequest, wire: Wire) -> None:
        bad = next((field for field in fields if field in request.json), None)
        error = {"error": {"message": f"Unsupported parameter: '{bad}' is not supported", "param": bad}}
        await (streaming() if bad is None else replying(400, error))(request, wire)

    return answer


@pytest.mark.parametrize(
    "fields",
    [
        ("max_tokens",),
        ("stream_options",),
        ("temperature",),
        ("ignore_eos",),
        ("max_tokens", "temperature", "min_tokens"),
    ],
)
async def test_a_refused_parameter_costs_one_retry_and_is_remembered(fields: tuple[str, ...], prober_of: MakeProber):
    async with FakeOpenAI(refusing(*fields)) as server:
        prober = prober_of(server.url, parameters={"temperature": 0})
        first = await prober.probe()
        learned = len(server.requests)
        second = await prober.probe()
    assert (first.outcome, second.outcome) == (ProbeOutcome.OK, ProbeOutcome.OK)
    assert len(server.requests) == learned + 1
    assert ("max_completion_tokens" in server.requests[-1].json) is ("max_tokens" in fields)


async def test_a_server_that_accepts_neither_token_field_is_bad_request_in_the_end(prober_of: MakeProber):
    async with FakeOpenAI(refusing("max_tokens", "max_completion_tokens")) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome is ProbeOutcome.BAD_REQUEST
    assert len(server.requests) == 2


async def test_an_idle_connection_that_was_closed_is_replaced_without_a_failure(prober_of: MakeProber):
    async def stale_second(request: FakeRequest, wire: Wire) -> None:
        if len(server.requests) == 2:
            wire.close()
        else:
            await streaming()(request, wire)

    async with FakeOpenAI(stale_second) as server:
        prober = prober_of(server.url)
        readings = [await prober.probe(), await prober.probe()]
    assert [reading.outcome for reading in readings] == [ProbeOutcome.OK, ProbeOutcome.OK]
    assert readings[1].connection == "new"
    assert [reading.resent for reading in readings] == [False, True], "it may be billed twice"
    assert [request.connection for request in server.requests] == [1, 1, 2]


async def test_a_new_connection_that_is_reset_is_not_retried(prober_of: MakeProber):
    async def hang_up(_request: FakeRequest, wire: Wire) -> None:
        wire.close()

    async with FakeOpenAI(hang_up) as server:
        assert (await prober_of(server.url).probe()).outcome is ProbeOutcome.RESET
    assert len(server.requests) == 1


async def test_the_first_listed_model_is_asked_when_none_is_named(prober_of: MakeProber):
    routes = {"/v1/models": replying(200, MODELS), "/v1/chat/completions": streaming()}
    async with FakeOpenAI(routed(routes, replying(404, "{}"))) as server:
        prober = prober_of(server.url, model=None)
        for _ in range(2):
            assert (await prober.probe()).outcome is ProbeOutcome.OK
    assert [request.path for request in server.requests] == ["/v1/models", *["/v1/chat/completions"] * 2]
    assert server.requests[1].json["model"] == "served-model"


async def test_a_listed_name_that_echoes_the_key_or_is_no_name_is_neither_asked_for_nor_shown(prober_of: MakeProber):
    key = "canary-key-0815"
    names = [key, f"m-{key}", "red\x1b[31m", "a\nb", "", "x" * 5000, "served-model"]
    listing = replying(200, {"data": [{"id": name} for name in names]})
    routes = {"/v1/models": listing, "/v1/chat/completions": streaming()}
    async with FakeOpenAI(routed(routes, replying(404, "{}"))) as server:
        prober = prober_of(server.url, model=None, api_key=key)
        assert (await prober.probe()).model == "served-model"
        assert (await prober.liveness()).models == ("served-model",)


async def test_a_listed_model_that_is_gone_is_looked_up_again(prober_of: MakeProber):
    gone = replying(404, {"error": {"message": "The model `served-model` does not exist."}})
    routes = {"/v1/models": replying(200, MODELS), "/v1/chat/completions": gone}
    async with FakeOpenAI(routed(routes, replying(404, "{}"))) as server:
        prober = prober_of(server.url, model=None)
        for _ in range(2):
            assert (await prober.probe()).outcome is ProbeOutcome.MODEL_NOT_FOUND
    assert [request.path for request in server.requests] == ["/v1/models", "/v1/chat/completions"] * 2


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (replying(200, {"data": []}), "model_not_found"),
        (replying(200, "<html></html>", "text/html"), "not_found"),
        (replying(401, {"error": "Unauthorized"}), "auth"),
        (replying(404, {"detail": "Not Found"}), "not_found"),
        (replying(500, "no", "text/plain"), "server_error"),
    ],
)
async def test_a_server_without_a_model_list_fails_with_its_reason(answer: Answer, outcome: str, prober_of: MakeProber):
    async with FakeOpenAI(answer) as server:
        reading = await prober_of(server.url, model=None).probe()
    assert reading.outcome == outcome
    assert all(request.path.endswith("/models") for request in server.requests)


async def test_a_key_file_is_read_at_each_probe(tmp_path: Path, prober_of: MakeProber):
    key = tmp_path / "key"
    async with FakeOpenAI(streaming()) as server:
        prober = prober_of(server.url, api_key_file=str(key))
        for text in ("old\n", "new\n"):
            key.write_text(text)
            await prober.probe()
    assert [request.headers["authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


@pytest.mark.parametrize(
    ("content", "said"), [(None, "No such file"), (b"a\nb", "characters that no key has"), (b"\xff", "characters")]
)
async def test_a_key_file_that_is_no_use_is_auth_and_nothing_is_sent(
    content: bytes | None, said: str, tmp_path: Path, prober_of: MakeProber
):
    key = tmp_path / "key"
    if content is not None:
        key.write_bytes(content)
    async with FakeOpenAI(streaming()) as server:
        reading = await prober_of(server.url, api_key_file=str(key)).probe()
    assert reading.outcome is ProbeOutcome.AUTH
    assert said in reading.detail
    assert server.requests == []


@pytest.mark.parametrize("odd", ["fifo", "folder"])
async def test_a_key_file_that_is_a_pipe_or_a_folder_is_told_and_holds_no_thread(
    odd: str, tmp_path: Path, prober_of: MakeProber
):
    key = tmp_path / "key"
    os.mkfifo(key) if odd == "fifo" else key.mkdir()
    prober, before = prober_of("http://127.0.0.1:9", api_key_file=str(key)), len(os.listdir("/proc/self/fd"))
    try:
        readings = [await asyncio.wait_for(prober.probe(), timeout=2) for _ in range(8)]
    finally:
        if odd == "fifo":  # lets go of a thread that waits for a writer
            os.close(os.open(key, os.O_RDWR | os.O_NONBLOCK))
    assert {reading.outcome for reading in readings} == {ProbeOutcome.AUTH}
    assert {"no regular file" in reading.detail for reading in readings} == {True}
    assert len(os.listdir("/proc/self/fd")) < before + 8


async def test_token_counts_that_are_none_are_unknown_and_no_defect(prober_of: MakeProber):
    huge = {"prompt_tokens": 10**400, "completion_tokens": 10**400, "prompt_tokens_details": {"cached_tokens": 10**400}}
    events = (*[delta(content="a")] * 12, delta(finish="stop", usage=huge), "[DONE]")
    async with FakeOpenAI(scripted(head, *(say(event) for event in events), end)) as server:
        reading = await prober_of(server.url).probe()
    assert reading.outcome == "ok", reading.detail
    assert (reading.prompt_tokens, reading.completion_tokens, reading.cached_tokens) == (None, 12, None)


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request"])
async def test_a_gzip_bomb_neither_fills_the_memory_nor_holds_up_the_loop(status: str, prober_of: MakeProber):
    bomb = gzip.compress(b"x" * 200_000_000, compresslevel=1)
    top = f"HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n".encode()
    lag = LoopLag(monotonic)
    async with FakeOpenAI(scripted(lambda wire: wire.send(top, bomb), close)) as server:
        prober = prober_of(server.url)
        lag.start()
        tracemalloc.start()
        reading = await prober.probe()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        lag.stop()
    assert reading.outcome == ("invalid_response" if status.startswith("200") else "bad_request")
    assert peak < 40_000_000, f"{peak / 1e6:.0f} MB"
    assert lag.largest_since_last_asked() < 1.0


async def test_a_change_is_logged_once(prober_of: MakeProber):
    from structlog.testing import capture_logs

    async with FakeOpenAI(streaming()) as server:
        prober = prober_of(server.url)
        with capture_logs() as lines:
            await prober.probe()
            server.answer = replying(500, "no", "text/plain")
            await prober.probe()
            await prober.probe()
            server.answer = streaming()
            await prober.probe()
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "probe fails"),
        ("info", "probe is fine again"),
    ]
    assert lines[0]["remedy"]


async def test_a_reading_knows_the_model_it_asked_for_its_counterparts_and_the_pace_of_its_text(prober_of: MakeProber):
    async with FakeOpenAI(routed({"/v1/models": replying(200, MODELS)}, streaming(tokens=40, tpot=0.005))) as server:
        result = await prober_of(server.url, model=None, compare_with=["api"]).probe()
    assert (result.model, result.compare_with) == ("served-model", ("api",))
    assert result.characters is not None
    assert result.tpot_seconds is not None
    assert result.characters_per_second == pytest.approx(result.characters / 40 / result.tpot_seconds)
