"""TLS with real certificates on real sockets: whom a request trusts, and how it is trusted."""

import asyncio
import contextlib
import shutil
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.http import HttpClient, SourceError
from pinchpoint.sources.http.ticket import OPEN
from tests.fakes.certificates import Authority, Certificate


@dataclass(frozen=True, slots=True)
class Makers:
    ours: Authority
    stranger: Authority
    good: Certificate
    expired: Certificate
    misnamed: Certificate


@pytest.fixture(scope="module")
def makers(tmp_path_factory: pytest.TempPathFactory) -> Makers:
    folder = tmp_path_factory.mktemp("tls")
    ours = Authority(folder, "ours")
    return Makers(
        ours,
        Authority(folder, "stranger"),
        ours.issue("IP:127.0.0.1", "IP:::1"),
        ours.issue("IP:127.0.0.1", end="20200201000000Z"),
        ours.issue("DNS:chat.example"),
    )


@asynccontextmanager
async def server(context: ssl.SSLContext | None, host: str = "127.0.0.1") -> AsyncIterator[str]:
    """Answers every request, and keeps the connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, host, 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield f"{'https' if context else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        listening.close()


async def ask(client: HttpClient, url: str, access: HttpAccess = OPEN, at: float = 0.0) -> bytes:
    answer = await client.fetch(url, timeout_seconds=5, max_body_bytes=100, now=lambda: at, access=access)
    assert answer.status == 200
    return answer.body


async def refusal(url: str, access: HttpAccess = OPEN) -> str:
    async with HttpClient() as client:
        with pytest.raises(SourceError) as caught:
            await ask(client, url, access)
    assert caught.value.reason is Reason.TLS
    assert "\n" not in caught.value.detail
    return caught.value.detail


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_server_of_our_own_authority_is_trusted(makers: Makers, host: str):
    async with server(makers.good.server(), host) as url, HttpClient() as client:
        assert await ask(client, url, HttpAccess(ca_file=str(makers.ours.file))) == b"hello"


async def test_without_its_authority_it_is_not(makers: Makers):
    async with server(makers.good.server()) as url:
        assert "set tls.ca_file to the authority that signed it" in await refusal(url)
        assert "set tls.ca_file" in await refusal(url, HttpAccess(ca_file=str(makers.stranger.file)))


async def test_an_expired_certificate_is_named_as_such(makers: Makers):
    async with server(makers.expired.server()) as url:
        assert "certificate has expired; renew it" in await refusal(url, HttpAccess(ca_file=str(makers.ours.file)))


async def test_a_certificate_for_another_name_is_refused_until_that_name_is_given(makers: Makers):
    trusting = HttpAccess(ca_file=str(makers.ours.file))
    async with server(makers.misnamed.server()) as url:
        assert "set tls.server_name" in await refusal(url, trusting)
        named = HttpAccess(ca_file=str(makers.ours.file), server_name="chat.example")
        async with HttpClient() as client:
            assert await ask(client, url, named) == b"hello"


async def test_a_connection_made_under_one_name_does_not_serve_a_target_that_expects_another(makers: Makers):
    named = HttpAccess(ca_file=str(makers.ours.file), server_name="chat.example")
    async with server(makers.misnamed.server()) as url, HttpClient() as client:
        assert await ask(client, url, named) == b"hello"
        with pytest.raises(SourceError, match=r"tls\.server_name"):
            await ask(client, url, HttpAccess(ca_file=str(makers.ours.file)))


async def test_unverified_means_anybody_is_trusted_and_the_log_says_so_once_per_server(makers: Makers):
    careless = HttpAccess(verify=False)
    with capture_logs() as logs:
        async with server(makers.expired.server()) as url, HttpClient() as client:
            assert [await ask(client, url, careless) for _ in range(3)] == [b"hello"] * 3
    assert [(log["log_level"], log["at"]) for log in logs] == [("warning", url.removeprefix("https://"))]


async def test_a_server_that_demands_a_certificate_gets_ours(makers: Makers):
    mine = makers.stranger.issue("DNS:pinchpoint")
    access = HttpAccess(ca_file=str(makers.ours.file), certificate_file=str(mine.certificate), key_file=str(mine.key))
    async with server(makers.good.server(clients=makers.stranger)) as url, HttpClient() as client:
        assert await ask(client, url, access) == b"hello"


@contextmanager
def blocking_server(context: ssl.SSLContext) -> Iterator[str]:
    """Shakes hands as most servers do: what is wrong is sent as an alert, before the connection is closed."""

    def serve(listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection.dup() as wire:
                    try:
                        context.wrap_socket(connection, server_side=True)
                    except ssl.SSLError:
                        while wire.recv(4096):  # else the alert would be lost with the connection
                            pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,))
        thread.start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("have_one", [False, True])
async def test_a_server_that_demands_a_certificate_and_gets_none_or_a_strangers_says_so(makers: Makers, have_one: bool):
    foreign = makers.ours.issue("DNS:pinchpoint")
    access = HttpAccess(ca_file=str(makers.ours.file))
    if have_one:
        access = replace(access, certificate_file=str(foreign.certificate), key_file=str(foreign.key))
    with blocking_server(makers.good.server(clients=makers.stranger)) as url:
        said = await refusal(url, access)
    assert "the server refuses us: set tls.certificate_file and key_file" in said
    assert ("unknown ca" if have_one else "certificate required") in said


async def test_a_server_that_closes_for_want_of_a_certificate_without_a_word_is_guessed_at(makers: Makers):
    access = HttpAccess(ca_file=str(makers.ours.file))
    async with server(makers.good.server(clients=makers.stranger)) as url, HttpClient() as client:
        with pytest.raises(SourceError, match=r"demands another client certificate: see tls\.certificate_file"):
            await ask(client, url, access)


async def test_https_to_a_port_without_tls_says_to_write_http():
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    listening = await asyncio.start_server(plain, "127.0.0.1", 0)
    url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    assert "the port speaks no TLS: write http://" in await refusal(url)
    listening.close()


async def test_an_authority_replaced_on_disk_is_in_force_for_the_next_request(makers: Makers, tmp_path: Path):
    ca = tmp_path / "ca.pem"
    shutil.copy(makers.stranger.file, ca)
    access = HttpAccess(ca_file=str(ca))
    async with server(makers.good.server()) as url, HttpClient() as client:
        with pytest.raises(SourceError, match="ca_file"):
            await ask(client, url, access)
        shutil.copy(makers.ours.file, ca)
        assert await ask(client, url, access) == b"hello"  # at the same moment: the failure makes it look at once


async def test_our_certificate_renewed_on_disk_is_shown_without_a_restart(makers: Makers, tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    old, new = makers.stranger.issue("DNS:a", end="20200201000000Z"), makers.stranger.issue("DNS:a")
    shutil.copy(old.certificate, certificate)
    shutil.copy(old.key, key)
    access = HttpAccess(ca_file=str(makers.ours.file), certificate_file=str(certificate), key_file=str(key))
    async with server(makers.good.server(clients=makers.stranger)) as url, HttpClient() as client:
        with pytest.raises(SourceError, match="certificate_file"):
            await ask(client, url, access)
        shutil.copy(new.certificate, certificate)
        shutil.copy(new.key, key)
        assert await ask(client, url, access) == b"hello"


async def test_a_certificate_half_renewed_leaves_the_last_pair_in_force(makers: Makers, tmp_path: Path):
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    mine, next_one = makers.stranger.issue("DNS:a"), makers.stranger.issue("DNS:a")
    shutil.copy(mine.certificate, certificate)
    shutil.copy(mine.key, key)
    access = HttpAccess(ca_file=str(makers.ours.file), certificate_file=str(certificate), key_file=str(key))
    async with server(makers.good.server(clients=makers.stranger)) as url, HttpClient() as client:
        await ask(client, url, access)
        shutil.copy(next_one.certificate, certificate)  # its key comes later
        with capture_logs() as logs:
            assert [await ask(client, url, access, at=10.0 * n) for n in (1, 2)] == [b"hello"] * 2
            shutil.copy(next_one.key, key)
            assert await ask(client, url, access, at=30.0) == b"hello"
    assert [log["event"] for log in logs] == [
        "file can't be used, what it last held stays in force",
        "file has changed and is in force",
    ]
    assert "key values mismatch" in logs[0]["cause"]
