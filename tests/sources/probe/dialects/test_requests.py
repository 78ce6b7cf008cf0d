"""What goes over the wire in each dialect: path, key, body; to a server on a real socket that accepts nothing else."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from pinchpoint.snapshot import ProbeOutcome
from pinchpoint.sources.probe import Prober, ProbeTargetSettings
from tests.fakes.openai_server import Answer, FakeOpenAI, FakeRequest, Wire, end, head, replying, scripted
from tests.sources.probe.conftest import MakeProber
from tests.sources.probe.dialects.streams import PAUSE, blocks_of, truths_ms

KEY = "secret-key-0123456789"
PAUSE_SECONDS = 0.06

# dialect: path of the request, headers beside the key's, the key's header, where the prompt is
WIRE: dict[str, tuple[str, dict[str, str], dict[str, str], tuple[str | int, ...]]] = {
    "openai_chat": ("/v1/chat/completions", {}, {"authorization": f"Bearer {KEY}"}, ("messages", 0, "content")),
    "openai_responses": ("/v1/responses", {}, {"authorization": f"Bearer {KEY}"}, ("input",)),
    "openai_completions": ("/v1/completions", {}, {"authorization": f"Bearer {KEY}"}, ("prompt",)),
    "azure_openai": ("/openai/v1/chat/completions", {}, {"api-key": KEY}, ("messages", 0, "content")),
    "anthropic": (
        "/v1/messages",
        {"anthropic-version": "2023-06-01"},
        {"x-api-key": KEY},
        ("messages", 0, "content"),
    ),
    "gemini": (
        "/v1beta/models/org%2Fm:streamGenerateContent?alt=sse",
        {},
        {"x-goog-api-key": KEY},
        ("contents", 0, "parts", 0, "text"),
    ),
}
# What a hosted API is sent and nothing else: strict ones refuse the rest.
BODY: dict[str, dict[str, object]] = {
    "openai_chat": {"model": "org/m", "stream": True, "max_tokens": 32, "stream_options": {"include_usage": True}},
    "openai_responses": {"model": "org/m", "stream": True, "max_output_tokens": 32, "store": False},
    "openai_completions": {
        "model": "org/m",
        "stream": True,
        "max_tokens": 32,
        "stream_options": {"include_usage": True},
    },
    "azure_openai": {"model": "org/m", "stream": True, "max_tokens": 32, "stream_options": {"include_usage": True}},
    "anthropic": {"model": "org/m", "stream": True, "max_tokens": 32},
    "gemini": {"generationConfig": {"maxOutputTokens": 32}},
}
STREAM = {
    "openai_chat": "openai_chat/openai",
    "openai_responses": "openai_responses/text",
    "openai_completions": "openai_chat/openai",
    "azure_openai": "openai_chat/azure",
    "anthropic": "anthropic/text",
    "gemini": "gemini/text",
}


def streaming(name: str, pause_seconds: float = 0.0) -> Answer:
    """The stream of that name, with real pauses where it says so."""

    async def play(wire: Wire) -> None:
        for block in blocks_of(name):
            await wire.send(*([] if block.startswith(PAUSE) else [f"{len(block):x}\r\n".encode() + block + b"\r\n"]))
            if block.startswith(PAUSE):
                await wire.send(b"", pause=pause_seconds)

    return scripted(head, play, end)


def only(path: str, answer: Answer) -> Answer:
    """That answer at that path, and no such path elsewhere."""

    async def routed(request: FakeRequest, wire: Wire) -> None:
        await (answer if request.path == path else replying(404, {"detail": "Not Found"}))(request, wire)

    return routed


def hosted(dialect: str, **more: Any) -> dict[str, Any]:
    return {"dialect": dialect, "placement": "hosted", "model": "org/m", "api_key": KEY} | more


@pytest.mark.parametrize("dialect", WIRE)
async def test_a_request_is_as_the_api_wants_it(dialect: str, prober_of: MakeProber):
    path, headers, key, prompt_at = WIRE[dialect]
    async with FakeOpenAI(only(path, streaming(STREAM[dialect]))) as server:
        reading = await prober_of(server.url, **hosted(dialect)).probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    (request,) = server.requests
    assert request.method == "POST"
    carriers = ("authorization", "api-key", "x-api-key", "x-goog-api-key", "anthropic-version")
    assert {name: request.headers[name] for name in carriers if name in request.headers} == headers | key
    assert KEY not in request.path
    assert KEY not in request.text
    body: Any = request.json
    prompt = body
    for step in prompt_at:
        prompt = prompt[step]
    assert len(prompt.split()[0]) == 16  # the nonce, before anything that a cache could know
    del body[prompt_at[0]]
    assert body == BODY[dialect]


@pytest.mark.parametrize("dialect", [*WIRE])
async def test_the_first_token_is_timed_on_a_real_socket(dialect: str, prober_of: MakeProber):
    stream = STREAM[dialect]
    assert len(truths_ms(stream)) == 2  # a pause before the first text, and one after it
    async with FakeOpenAI(only(WIRE[dialect][0], streaming(stream, PAUSE_SECONDS))) as server:
        reading = await prober_of(server.url, **hosted(dialect)).probe()
    assert reading.ttft_seconds is not None
    assert reading.ttft_seconds >= PAUSE_SECONDS
    assert reading.phases["generation"] >= PAUSE_SECONDS * 0.9
    assert reading.completion_tokens == 12


@pytest.mark.parametrize("dialect", WIRE)
async def test_without_a_key_none_is_sent(dialect: str, prober_of: MakeProber):
    async with FakeOpenAI(streaming(STREAM[dialect])) as server:
        await prober_of(server.url, **hosted(dialect, api_key=None)).probe()
    assert not {"authorization", "api-key", "x-api-key", "x-goog-api-key"} & server.requests[0].headers.keys()


OLDER_AZURE = "/openai/deployments/org%2Fm/chat/completions"
BASES = [
    ("openai_responses", "/v1", "/v1/responses"),
    ("openai_responses", "/v1/responses", "/v1/responses"),
    ("openai_responses", "/api", "/api/v1/responses"),
    ("openai_responses", "/api", "/api/responses"),
    ("anthropic", "/v1", "/v1/messages"),
    ("anthropic", "/v1/messages", "/v1/messages"),
    ("anthropic", "/api", "/api/v1/messages"),
    ("anthropic", "/anthropic", "/anthropic/v1/messages"),
    ("gemini", "/v1beta", "/v1beta/models/org%2Fm:streamGenerateContent?alt=sse"),
    ("gemini", "/v1", "/v1/models/org%2Fm:streamGenerateContent?alt=sse"),
    ("gemini", "/v1", "/v1beta/models/org%2Fm:streamGenerateContent?alt=sse"),
    ("gemini", "/v1beta/models", "/v1beta/models/org%2Fm:streamGenerateContent?alt=sse"),
    ("gemini", "/proxy", "/proxy/v1beta/models/org%2Fm:streamGenerateContent?alt=sse"),
    ("azure_openai", "/openai", "/openai/v1/chat/completions"),
    ("azure_openai", "/openai/v1", "/openai/v1/chat/completions"),
    ("azure_openai", "", "/openai/deployments/org%2Fm/chat/completions?api-version=2024-10-21"),
    ("azure_openai", "/openai/v1", "/openai/deployments/org%2Fm/chat/completions?api-version=2024-10-21"),
    ("azure_openai", "/openai/deployments/d", "/openai/deployments/d/chat/completions?api-version=2024-10-21"),
    (
        "azure_openai",
        "/openai/deployments/d/chat/completions",
        "/openai/deployments/d/chat/completions?api-version=2024-10-21",
    ),
]


@pytest.mark.parametrize(("dialect", "base", "served"), BASES)
async def test_a_base_url_is_understood_with_and_without_its_version(
    dialect: str, base: str, served: str, prober_of: MakeProber
):
    async with FakeOpenAI(only(served, streaming(STREAM[dialect]))) as server:
        prober = prober_of(server.url + base, **hosted(dialect))
        assert (await prober.probe()).outcome is ProbeOutcome.OK
        before = len(server.requests)
        assert (await prober.probe()).outcome is ProbeOutcome.OK
    assert [request.path for request in server.requests[before:]] == [served]


@pytest.mark.parametrize(
    ("dialect", "version", "path", "header"),
    [
        ("azure_openai", "2025-01-01-preview", f"{OLDER_AZURE}?api-version=2025-01-01-preview", {}),
        ("azure_openai", "preview", "/openai/v1/chat/completions?api-version=preview", {}),
        ("gemini", "v1", "/v1/models/org%2Fm:streamGenerateContent?alt=sse", {}),
        ("anthropic", "2099-01-01", "/v1/messages", {"anthropic-version": "2099-01-01"}),
    ],
)  # fmt: skip
async def test_an_api_version_goes_where_the_api_wants_it(
    dialect: str, version: str, path: str, header: Mapping[str, str], prober_of: MakeProber
):
    async with FakeOpenAI(only(path, streaming(STREAM[dialect]))) as server:
        reading = await prober_of(server.url, **hosted(dialect, api_version=version)).probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert len(server.requests) == 1
    assert header.items() <= server.requests[0].headers.items()


async def test_a_model_of_gemini_may_be_written_as_its_list_writes_it(prober_of: MakeProber):
    path = "/v1beta/models/m:streamGenerateContent?alt=sse"
    async with FakeOpenAI(only(path, streaming("gemini/text"))) as server:
        reading = await prober_of(server.url, **hosted("gemini", model="models/m")).probe()
    assert reading.outcome is ProbeOutcome.OK


async def test_a_token_of_entra_id_goes_to_azure_as_a_bearer_token(prober_of: MakeProber):
    async with FakeOpenAI(streaming(STREAM["azure_openai"])) as server:
        await prober_of(server.url, **hosted("azure_openai", api_key="eyJ0eXAi.eyJhdWQi.c2ln")).probe()
    assert server.requests[0].headers["authorization"] == "Bearer eyJ0eXAi.eyJhdWQi.c2ln"
    assert "api-key" not in server.requests[0].headers


LISTS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "openai_chat": ("/v1/models", {"data": [{"id": "a"}, {"id": ""}, {"id": "b"}]}, ("a", "b")),
    "openai_responses": ("/v1/models", {"data": [{"id": "a"}]}, ("a",)),
    "anthropic": ("/v1/models", {"data": [{"type": "model", "id": "a"}], "has_more": False}, ("a",)),
    "gemini": ("/v1beta/models", {"models": [{"name": "models/a"}, {"displayName": "x"}]}, ("a",)),
    "azure_openai": ("/openai/v1/models", {"data": [{"id": "not-a-deployment"}]}, ()),
}


@pytest.mark.parametrize("dialect", LISTS)
async def test_a_sign_of_life_asks_for_the_list_of_models_and_nothing_else(dialect: str, prober_of: MakeProber):
    path, document, models = LISTS[dialect]
    async with FakeOpenAI(only(path, replying(200, document))) as server:
        alive = await prober_of(server.url, **hosted(dialect)).liveness()
    assert (alive.outcome, alive.models, alive.http_status, alive.at) == (ProbeOutcome.OK, models, 200, 7.0)
    assert alive.duration_seconds is not None
    assert [(request.method, request.path) for request in server.requests] == [("GET", path)]
    assert WIRE[dialect][2].items() <= server.requests[0].headers.items()


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (replying(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}), "auth"),
        (replying(404, {"detail": "Not Found"}), "not_found"),
        (replying(200, "<html>console</html>", "text/html"), "not_found"),
        (replying(200, {"status": "ok"}), "not_found"),
        (replying(503, "no healthy upstream", "text/plain"), "proxy"),
    ],
)
async def test_a_sign_of_life_fails_in_a_probes_words(answer: Answer, outcome: str, prober_of: MakeProber):
    async with FakeOpenAI(answer) as server:
        alive = await prober_of(server.url, **hosted("openai_chat")).liveness()
    assert alive.outcome == outcome
    assert alive.remedy
    assert KEY not in repr(alive)
    assert alive.models == ()


async def test_no_sign_of_life_from_a_port_where_nobody_is(prober_of: MakeProber):
    async with FakeOpenAI(replying(200, {})) as server:
        url = server.url
    alive = await prober_of(url).liveness()
    assert (alive.outcome, alive.http_status) == (ProbeOutcome.CONNECT_REFUSED, None)


async def test_a_very_long_list_of_models_is_kept_in_part(prober_of: MakeProber):
    many = {"data": [{"id": f"model-{i}"} for i in range(5000)]}
    async with FakeOpenAI(replying(200, many)) as server:
        alive = await prober_of(server.url).liveness()
    assert len(alive.models) == 2000


async def test_the_model_of_azure_is_not_taken_from_a_list_that_has_no_deployments(prober_of: MakeProber):
    async with FakeOpenAI(replying(200, {"data": [{"id": "gpt-x"}]})) as server:
        reading = await prober_of(server.url, dialect="azure_openai", model=None).probe()
    assert reading.outcome is ProbeOutcome.MODEL_NOT_FOUND
    assert "name the one to ask" in reading.remedy


WHOLE: dict[str, Any] = {
    "openai_chat": {"choices": [{"message": {"content": "One"}}]},
    "openai_responses": {"object": "response", "status": "completed", "output": [{"type": "message"}]},
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "One"}]},
    "gemini": [{"candidates": [{"content": {"parts": [{"text": "One"}]}}]}],  # as without alt=sse
}


@pytest.mark.parametrize("dialect", WHOLE)
async def test_a_whole_answer_is_not_streamed_in_any_dialect(dialect: str, prober_of: MakeProber):
    async with FakeOpenAI(replying(200, json.dumps(WHOLE[dialect]))) as server:
        reading = await prober_of(server.url, **hosted(dialect)).probe()
    assert (reading.outcome, reading.ttft_seconds) == (ProbeOutcome.NOT_STREAMED, None)


async def test_a_finish_reason_on_every_chunk_does_not_cut_the_answer_short(prober_of: MakeProber):
    texts = [block for block in blocks_of("gemini/text") if not block.startswith(PAUSE)]
    each_ends = [block.replace(b'"index":0', b'"index":0,"finishReason":"STOP"') for block in texts[:-1]] + texts[-1:]

    async def slowly(wire: Wire) -> None:  # over longer than the second that is left after an end
        for block in each_ends:
            await wire.chunk(block)
            await asyncio.sleep(0.4)

    async with FakeOpenAI(scripted(head, slowly, end)) as server:
        reading = await prober_of(server.url, **hosted("gemini")).probe()
    assert (reading.outcome, reading.completion_tokens, reading.characters) == (ProbeOutcome.OK, 12, 33)


async def test_a_clock_that_steps_changes_no_duration():
    steps = itertools.count(1e9, -86_400)
    async with FakeOpenAI(streaming("openai_chat/openai", PAUSE_SECONDS)) as server:
        target = ProbeTargetSettings(name="t", url=server.url, model="m")
        prober = Prober(target, clock=lambda: next(steps))
        reading = await prober.probe()
        await prober.close()
    assert (reading.outcome, reading.at) == (ProbeOutcome.OK, 1e9)
    assert reading.ttft_seconds is not None
    assert reading.duration_seconds is not None
    assert PAUSE_SECONDS <= reading.ttft_seconds < reading.duration_seconds < 60
