"""Faults of the way to the server, made on real sockets: names, TLS, proxies, and silence at every stage."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from pinchpoint.snapshot import ProbeOutcome
from tests.fakes.certificates import Authority, self_signed
from tests.fakes.openai_server import (
    FakeOpenAI,
    FakeRequest,
    Wire,
    delta,
    hang,
    head,
    reset,
    say,
    scripted,
    streaming,
)
from tests.sources.probe.conftest import QUICK, MakeProber

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(handler: Handler) -> AsyncIterator[str]:
    """The address of a server that does with each connection as ``handler`` does."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handler(reader, writer)
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


def answering(answer: bytes) -> Handler:
    """Reads the head of a request, sends ``answer`` and closes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()

    return handler


# TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize(
    ("names", "end", "trusted", "said"),
    [
        (("IP:127.0.0.1",), "20210101000000Z", True, "certificate has expired"),
        (("DNS:elsewhere.example",), "20491231235959Z", True, "IP address mismatch"),
        (("IP:127.0.0.1",), "20491231235959Z", False, "unable to get local issuer certificate"),
    ],
    ids=["expired", "wrong host", "unknown authority"],
)
async def test_a_certificate_that_does_not_hold_is_tls_and_says_why(
    names: tuple[str, ...], end: str, trusted: bool, said: str, authority: Authority, prober_of: MakeProber
):
    tls = {"ca_file": authority.file} if trusted else {}
    async with FakeOpenAI(streaming(), authority.issue(*names, end=end).server()) as server:
        reading = await prober_of(server.url, tls=tls).probe()
    assert reading.outcome is ProbeOutcome.TLS
    assert said in reading.detail
    assert server.requests == [], "nothing was sent to whom is not trusted, the key least of all"


async def test_a_self_signed_certificate_is_tls_unless_it_is_trusted(tmp_path: Path, prober_of: MakeProber):
    own = self_signed(tmp_path, "IP:127.0.0.1")
    async with FakeOpenAI(streaming(), own.server()) as server:
        reading = await prober_of(server.url).probe()
        trusting = await prober_of(server.url, tls={"ca_file": own.certificate}).probe()
    assert reading.outcome is ProbeOutcome.TLS
    assert "self-signed certificate" in reading.detail
    assert trusting.outcome is ProbeOutcome.OK, trusting.detail


async def test_a_certificate_may_be_expected_to_bear_another_name(authority: Authority, prober_of: MakeProber):
    tls = {"ca_file": authority.file, "server_name": "chat.internal"}
    async with FakeOpenAI(streaming(), authority.issue("DNS:chat.internal").server()) as server:
        reading = await prober_of(server.url, tls=tls).probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail


def relay(port: int, wait_seconds: float) -> Handler:
    """Passes everything on to ``port``, the first bytes of the answer after a wait."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
        while data := await reader.read(65536):
            await asyncio.sleep(seconds)
            seconds = 0.0
            writer.write(data)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_upstream = await asyncio.open_connection("127.0.0.1", port)
        up = asyncio.create_task(pump(reader, to_upstream, 0.0))
        try:
            await pump(upstream, writer, wait_seconds)
        finally:
            up.cancel()
            to_upstream.close()

    return handler


async def test_over_tls_the_handshake_is_a_phase_of_its_own_and_no_part_of_ttft(
    authority: Authority, prober_of: MakeProber
):
    tls = authority.issue("IP:127.0.0.1").server()
    async with FakeOpenAI(streaming(ttft=0.05), tls) as server, listening(relay(server.port, 0.3)) as address:
        prober = prober_of(f"https://{address}", tls={"ca_file": authority.file})
        first, second = await prober.probe(), await prober.probe()
    assert first.outcome is ProbeOutcome.OK, first.detail
    assert {"connect", "tls", "send", "headers", "first_token", "generation"} < set(first.phases)
    assert first.phases["tls"] > 0.3 > first.phases["connect"] > 0
    assert first.ttft_seconds == pytest.approx(first.phases["headers"] + first.phases["first_token"])
    assert (first.connection, second.connection) == ("new", "reused")
    assert {"connect", "tls", "resolve"}.isdisjoint(second.phases)


async def test_a_server_that_leaves_the_handshake_unanswered_is_connect_timeout_and_says_so(prober_of: MakeProber):
    async with listening(silent) as address:
        reading = await prober_of(f"https://{address}", deadlines=QUICK).probe()
    assert reading.outcome is ProbeOutcome.CONNECT_TIMEOUT
    assert "TLS handshake" in reading.detail
    assert reading.unfinished_phase == "tls"


async def test_a_file_of_authorities_that_is_gone_is_tls(authority: Authority, tmp_path: Path, prober_of: MakeProber):
    file = tmp_path / "ca.pem"
    file.write_bytes(authority.file.read_bytes())
    prober = prober_of("https://127.0.0.1:1", tls={"ca_file": file})
    file.unlink()
    reading, liveness = await prober.probe(), await prober.liveness()
    assert reading.outcome is liveness.outcome is ProbeOutcome.TLS
    assert "ca.pem: no such file" in reading.detail


# Names


async def test_the_time_to_look_up_a_name_is_a_phase_of_its_own(prober_of: MakeProber):
    async with FakeOpenAI(streaming()) as server:
        reading = await prober_of(f"http://localhost:{server.port}").probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert reading.phases["resolve"] > 0
    assert reading.phases["connect"] > 0


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 64 + ".example"])
async def test_a_name_that_can_not_resolve_is_dns(host: str, prober_of: MakeProber):
    reading = await prober_of(f"http://{host}", deadlines={"connect": 10}).probe()
    assert reading.outcome is ProbeOutcome.DNS
    assert "connect" not in reading.phases


async def test_the_name_of_a_proxy_that_does_not_resolve_is_dns(prober_of: MakeProber):
    prober = prober_of("https://model.example", proxy="http://no-such-host.invalid:3128", deadlines={"connect": 10})
    reading = await prober.probe()
    assert reading.outcome is ProbeOutcome.DNS
    assert "no-such-host.invalid" in reading.detail


# Proxies


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        (answering(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), "502"),
        (answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), "407"),
        (answering(b""), "the proxy does not connect"),
        (answering(b"HTTP/1.1 200 Connec"), "the proxy does not connect"),
        (answering(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "the proxy does not connect"),
        (silent, "while the proxy was asked to connect"),
    ],
    ids=["502", "407", "hangs up", "breaks off", "is none", "is silent"],
)
async def test_a_proxy_that_breaks_before_it_has_connected_is_proxy(handler: Handler, said: str, prober_of: MakeProber):
    async with listening(handler) as address:
        prober = prober_of("https://model.example", proxy=f"http://{address}", deadlines=QUICK)
        reading = await prober.probe()
    assert reading.outcome is ProbeOutcome.PROXY, reading.detail
    assert said in reading.detail


def tunnel(breaks_after: int | None = None) -> Handler:
    """An HTTP proxy that connects, and that hangs up once it has passed on so many bytes of the answer."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
        while data := await reader.read(65536):
            writer.write(data if limit is None else data[:limit])
            await writer.drain()
            limit = None if limit is None else limit - len(data)
            if limit is not None and limit <= 0:
                return

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        host, _, port = request.split(" ")[1].rpartition(":")
        upstream, to_upstream = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        up = asyncio.create_task(pump(reader, to_upstream, None))
        try:
            await pump(upstream, writer, breaks_after)
        finally:
            up.cancel()
            to_upstream.close()

    return handler


async def test_through_a_proxy_the_handshake_is_that_with_the_server(authority: Authority, prober_of: MakeProber):
    tls = authority.issue("IP:127.0.0.1").server()
    async with FakeOpenAI(streaming(ttft=0.05), tls) as server, listening(tunnel()) as address:
        prober = prober_of(server.url, proxy=f"http://{address}", tls={"ca_file": authority.file})
        reading = await prober.probe()
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert reading.phases["connect"] > 0
    assert reading.phases["tls"] > 0
    assert reading.phases["send"] < 0.05, "what was sent to the proxy was not the request"


async def test_a_proxy_that_breaks_in_the_middle_of_the_answer_truncates_it(
    authority: Authority, prober_of: MakeProber
):
    tls = authority.issue("IP:127.0.0.1").server()
    answer = streaming(tokens=200, tpot=0.001)
    async with FakeOpenAI(answer, tls) as server, listening(tunnel(breaks_after=9000)) as address:
        prober = prober_of(server.url, proxy=f"http://{address}", tls={"ca_file": authority.file})
        reading = await prober.probe()
    assert reading.outcome is ProbeOutcome.TRUNCATED, reading.detail
    assert reading.ttft_seconds is not None


async def test_the_certificate_behind_a_proxy_is_judged_as_any_other(authority: Authority, prober_of: MakeProber):
    expired = authority.issue("IP:127.0.0.1", end="20210101000000Z").server()
    async with FakeOpenAI(streaming(), expired) as server, listening(tunnel()) as address:
        prober = prober_of(server.url, proxy=f"http://{address}", tls={"ca_file": authority.file})
        reading = await prober.probe()
    assert reading.outcome is ProbeOutcome.TLS
    assert "expired" in reading.detail


# Silence and breaks, stage by stage


@pytest.mark.parametrize(
    ("steps", "outcome", "reached"),
    [
        ((hang,), ProbeOutcome.FIRST_TOKEN_TIMEOUT, "send"),
        ((head, hang), ProbeOutcome.FIRST_TOKEN_TIMEOUT, "headers"),
        ((head, say(delta(content="a")), hang), ProbeOutcome.STALLED, "first_token"),
        ((head, say(delta(content="a")), reset), ProbeOutcome.TRUNCATED, "first_token"),
    ],
    ids=["before the headers", "before the first token", "in the middle", "reset in the middle"],
)
async def test_the_phases_end_where_the_server_fell_silent(
    steps: tuple[Callable[..., Awaitable[None]], ...], outcome: ProbeOutcome, reached: str, prober_of: MakeProber
):
    order = ["connect", "send", "headers", "first_token", "generation"]
    async with FakeOpenAI(scripted(*steps)) as server:
        reading = await prober_of(server.url, deadlines=QUICK).probe()
    assert reading.outcome is outcome, reading.detail
    ended = [phase for phase in order if phase in reading.phases and phase != reading.unfinished_phase]
    assert ended == order[: order.index(reached) + 1]
    assert reading.unfinished_phase == order[order.index(reached) + 1]


async def test_many_probes_whose_idle_connections_are_all_gone_succeed_on_new_ones(prober_of: MakeProber):
    async def hang_up_on_the_old(request: FakeRequest, wire: Wire) -> None:
        if request.connection > 8:
            await streaming()(request, wire)
        else:
            wire.close()

    async with FakeOpenAI(streaming(ttft=0.2)) as server:
        prober = prober_of(server.url)
        await asyncio.gather(*(prober.probe() for _ in range(8)))
        assert {request.connection for request in server.requests} == set(range(1, 9))
        server.answer = hang_up_on_the_old
        readings = await asyncio.gather(*(prober.probe() for _ in range(8)))
    assert {reading.outcome for reading in readings} == {ProbeOutcome.OK}
    assert {(reading.connection, reading.resent) for reading in readings} == {("new", True)}


async def test_a_line_of_a_megabyte_and_characters_cut_anywhere_arrive_whole(prober_of: MakeProber):
    long, short = "é✓\U0001f600" * 120_000, "ünïcödé ✓"

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        await wire.head()
        for event, size in ((_event(long), 65_537), (_event(short), 1), (_event("", finish="stop"), 7)):
            for begin in range(0, len(event), size):
                await wire.chunk(event[begin : begin + size])
        await wire.end()

    async with FakeOpenAI(answer) as server:
        reading = await prober_of(server.url).probe()
    assert len(_event(long)) > 1_000_000
    assert reading.outcome is ProbeOutcome.OK, reading.detail
    assert reading.characters == len(long) + len(short)


def _event(text: str, finish: str | None = None) -> bytes:
    return f"data: {json.dumps(delta(content=text, finish=finish), ensure_ascii=False)}\n\n".encode()
