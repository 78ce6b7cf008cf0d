"""Every outcome of the closed list, in a case in which it really happens on a socket."""

import asyncio
import socket
import threading

import pytest

from pinchpoint.snapshot import ProbeOutcome, ProbeReading
from tests.fakes.openai_server import (
    Answer,
    FakeOpenAI,
    Wire,
    close,
    delta,
    end,
    hang,
    head,
    replying,
    reset,
    say,
    scripted,
    streaming,
    usage_chunk,
)
from tests.sources.probe.conftest import PATIENT, QUICK, MakeProber

PLAIN_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
GZIP_HEAD = PLAIN_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
NGINX = "<html><center><h1>504 Gateway Time-out</h1></center><hr><center>nginx</center></html>"


async def keep_alive_forever(wire: Wire) -> None:
    while True:
        await wire.chunk(b": keepalive\n\ndata: \n\n")
        await asyncio.sleep(0.02)


async def text_forever(wire: Wire) -> None:
    while True:
        await wire.event(delta(content="more "))
        await asyncio.sleep(0.02)


FAILURES: dict[str, list[Answer]] = {
    "reset": [
        scripted(close),
        scripted(reset),
        scripted(lambda wire: wire.send(b"HTTP/1.1 200 OK\r\nContent-"), close),
    ],
    "first_token_timeout": [
        scripted(hang),
        scripted(head, hang),
        scripted(head, keep_alive_forever),
        scripted(head, say(delta(role="assistant", content="")), hang),
    ],
    "stalled": [
        scripted(head, say(delta(content="a")), hang),
        scripted(head, say(delta(content="a")), keep_alive_forever),
    ],
    "overall_timeout": [scripted(head, text_forever)],
    "auth": [replying(401, {"error": "Unauthorized"})],
    "forbidden": [replying(400, {"error": {"message": "verify", "param": "stream", "code": "unsupported_value"}})],
    "model_not_found": [
        replying(404, {"error": {"message": "The model `m` does not exist.", "type": "NotFoundError"}})
    ],
    "not_found": [replying(404, {"detail": "Not Found"}), replying(302, "", location="http://elsewhere/")],
    "quota": [
        replying(429, {"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}}),
        scripted(head, say({"error": {"message": "quota exceeded"}}), close),
    ],
    "rate_limited": [
        replying(429, {"error": {"code": "429", "message": "Rate limit is exceeded. Try again in 2 seconds."}})
    ],
    "context_length": [replying(400, {"error": {"message": "This model's maximum context length is 8 tokens."}})],
    "content_filter": [
        replying(400, {"error": {"code": "content_filter"}}),
        scripted(head, say(delta(content="a"), delta(finish="content_filter"), "[DONE]"), end),
    ],
    "bad_request": [replying(400, {"error": {"message": "Cannot apply chat template", "code": 400}})],
    "overloaded": [
        replying(503, {"error": {"message": "queue full"}}),
        scripted(head, say({"type": "error", "error": {"type": "overloaded_error"}}), close),
    ],
    "engine_dead": [
        replying(500, {"error": {"message": "EngineCore encountered an issue."}}),
        scripted(
            head,
            say(delta(content="a"), {"error": {"message": "EngineCore encountered an issue.", "code": 500}}),
            reset,
        ),
    ],
    "server_error": [replying(500, "Internal Server Error", "text/plain")],
    "stream_error": [scripted(head, say({"error": {"message": "something new", "code": 500}}), close)],
    "truncated": [
        scripted(head, say(delta(content="a")), close),
        scripted(head, say(delta(content="a")), reset),
        scripted(head, say(delta(content="a")), end),
        scripted(lambda wire: wire.send(PLAIN_HEAD, b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'), close),
        scripted(lambda wire: wire.send(PLAIN_HEAD, b'data: {"choi'), close),
        scripted(head, close),
    ],
    "not_streamed": [
        replying(200, {"choices": [{"message": {"content": "whole"}}]}),
        scripted(
            head,
            lambda wire: wire.event(*[delta(content="a")] * 32, delta(finish="stop"), usage_chunk(32), "[DONE]"),
            end,
        ),
    ],
    "invalid_response": [
        replying(200, "<html>welcome</html>", "text/html"),
        replying(200, {"hello": "world"}),
        scripted(head, say("{not json", delta(content="a", finish="stop"), "[DONE]"), end),
        scripted(head, say("[DONE]"), end),
        scripted(lambda wire: wire.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), close),
        scripted(head, lambda wire: wire.chunk(b"data: " + b"x" * 5_000_000), hang),
        scripted(lambda wire: wire.send(GZIP_HEAD, b"no gzip"), close),
    ],
    "empty_output": [
        scripted(head, say(delta(role="assistant"), delta(finish="stop"), "[DONE]"), end),
    ],
    "proxy": [
        replying(504, NGINX, "text/html"),
        replying(200, NGINX, "text/html"),
        replying(520, {"cloudflare_error": True, "status": 520}),
        replying(407, "", proxy_authenticate="Basic"),
    ],
}
CASES = [(reason, answer) for reason, answers in FAILURES.items() for answer in answers]


def assert_a_failure(reading: ProbeReading, reason: str) -> None:
    assert reading.outcome == reason, reading.detail
    assert reading.detail
    assert reading.remedy
    assert reading.tpot_seconds is None
    assert reading.duration_seconds is not None


@pytest.mark.parametrize(("reason", "answer"), CASES, ids=[f"{reason}-{i}" for i, (reason, _) in enumerate(CASES)])
async def test_a_failure_has_its_one_reason(reason: str, answer: Answer, prober_of: MakeProber):
    deadlines = QUICK if reason in ("first_token_timeout", "stalled", "overall_timeout") else PATIENT
    async with FakeOpenAI(answer) as server:
        reading = await prober_of(server.url, deadlines=deadlines).probe()
    assert_a_failure(reading, reason)


async def test_a_name_that_does_not_resolve_is_dns(prober_of: MakeProber):
    reading = await prober_of("http://no-such-host.invalid", deadlines={"connect": 10}).probe()
    assert_a_failure(reading, "dns")


async def test_a_resolver_that_hangs_is_dns_too(prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch):
    released = threading.Event()

    def hanging(*_args: object) -> list[object]:
        released.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    try:
        reading = await prober_of("http://model.internal", deadlines=QUICK).probe()
    finally:
        released.set()
    assert_a_failure(reading, "dns")


async def test_a_port_where_nobody_listens_is_connect_refused(prober_of: MakeProber):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        reading = await prober_of(f"http://127.0.0.1:{unused.getsockname()[1]}").probe()
    assert_a_failure(reading, "connect_refused")
    assert reading.connection is None


async def test_a_full_backlog_is_connect_timeout(prober_of: MakeProber):
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        await asyncio.sleep(0.01)
        reading = await prober_of(f"http://127.0.0.1:{deaf.getsockname()[1]}", deadlines=QUICK).probe()
    assert_a_failure(reading, "connect_timeout")
    assert "connect 0.3 s" in reading.detail


async def test_a_server_without_tls_behind_https_is_tls(prober_of: MakeProber):
    async def talk_plainly(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk_plainly, "127.0.0.1", 0) as plain:
        reading = await prober_of(f"https://127.0.0.1:{plain.sockets[0].getsockname()[1]}").probe()
    assert_a_failure(reading, "tls")


async def test_a_proxy_that_is_down_is_proxy(prober_of: MakeProber):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert_a_failure(await prober_of("http://127.0.0.1:1", proxy=proxy).probe(), "proxy")


async def test_a_proxy_is_used_when_it_is_configured_and_only_then(
    prober_of: MakeProber, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with FakeOpenAI(streaming()) as server:
        assert (await prober_of(server.url).probe()).outcome is ProbeOutcome.OK
        assert (await prober_of("http://model.internal", proxy=server.url).probe()).outcome is ProbeOutcome.OK
    assert server.requests[1].path == "http://model.internal/v1/chat/completions"


async def test_our_own_defect_is_internal_and_does_not_raise(prober_of: MakeProber):
    def broken() -> str:
        raise RuntimeError("secret text")

    async with FakeOpenAI(streaming()) as server:
        reading = await prober_of(server.url, nonce=broken).probe()
    assert reading.outcome is ProbeOutcome.INTERNAL
    assert reading.detail == "RuntimeError"


async def test_a_cancelled_probe_has_no_result(prober_of: MakeProber):
    asked = asyncio.Event()

    async def hang_audibly(wire: Wire) -> None:
        asked.set()
        await wire.hang()

    async with FakeOpenAI(scripted(head, hang_audibly)) as server:
        task = asyncio.create_task(prober_of(server.url).probe())
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_no_reason_is_without_its_case():
    here = {"dns", "connect_refused", "connect_timeout", "tls", "internal", "ok"}
    assert {outcome.value for outcome in ProbeOutcome} == set(FAILURES) | here
