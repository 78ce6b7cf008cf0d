"""The client on real sockets: credentials, their files, the pool, and what it keeps away from."""

import asyncio
import base64
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pinchpoint.snapshot import HttpAccess, Reason
from pinchpoint.sources.http import JSON, Answer, HttpClient, SourceError
from pinchpoint.sources.http.client import MAX_CONNECTIONS_PER_HOST
from pinchpoint.sources.http.resolver import Resolver
from pinchpoint.sources.http.ticket import OPEN

Head = dict[str, str]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
REFUSED = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Keeps its connections, remembers the heads it got, and answers as ``answer`` says."""

    def __init__(self, answer: Callable[[Head], bytes] = lambda _: OK) -> None:
        self.answer = answer
        self.heads: list[Head] = []
        self.connections: list[asyncio.StreamWriter] = []
        self.port = 0

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while True:
                lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                self.heads.append(dict(line.split(": ", 1) for line in lines[1:] if line))
                writer.write(self.answer(self.heads[-1]))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[str]:
    listening = await asyncio.start_server(server, "127.0.0.1", server.port)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{server.port}/metrics"
    finally:
        listening.close()
        for connection in server.connections:
            connection.transport.abort()


async def ask(client: HttpClient, url: str, access: HttpAccess = OPEN, at: float = 0.0) -> Answer:
    return await client.fetch(url, timeout_seconds=5, max_body_bytes=100, now=lambda: at, access=access)


def expecting(*tokens: str) -> Callable[[Head], bytes]:
    """Lets in who has the token that is due: each one but the last for a single request."""
    due = list(tokens)

    def answer(head: Head) -> bytes:
        return OK if head.get("Authorization") == f"Bearer {due.pop(0) if len(due) > 1 else due[0]}" else REFUSED

    return answer


async def test_every_kind_of_credential_is_sent_as_its_rfc_says(tmp_path: Path):
    (tmp_path / "secret").write_text("from-file\n")
    file = str(tmp_path / "secret")
    server = Server()
    async with serving(server) as url, HttpClient() as client:
        for access in (
            OPEN,
            HttpAccess(bearer_token="a"),
            HttpAccess(bearer_token_file=file),
            HttpAccess(basic_username="me", basic_password="pä:ss"),
            HttpAccess(basic_username="me", basic_password_file=file),
            HttpAccess(headers={"X-Api-Key": "k"}),
        ):
            assert (await ask(client, url, access)).body == b"hello"
    assert [head.get("Authorization") for head in server.heads] == [
        None,
        "Bearer a",
        "Bearer from-file",
        f"Basic {base64.b64encode('me:pä:ss'.encode()).decode()}",
        f"Basic {base64.b64encode(b'me:from-file').decode()}",
        None,
    ]
    assert server.heads[-1]["X-Api-Key"] == "k"
    assert {head["Accept-Encoding"] for head in server.heads} == {"identity"}


async def test_a_token_rotated_on_disk_is_sent_from_the_next_look_on(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("one")
    access = HttpAccess(bearer_token_file=str(token))
    server = Server()
    async with serving(server) as url, HttpClient() as client:
        await ask(client, url, access, at=0.0)
        replaced = tmp_path / "new"
        replaced.write_text("two")
        replaced.rename(token)
        await ask(client, url, access, at=1.0)
        await ask(client, url, access, at=5.0)
    assert [head["Authorization"] for head in server.heads] == ["Bearer one", "Bearer one", "Bearer two"]


async def test_a_token_turned_by_a_symlink_as_kubernetes_does_is_seen(tmp_path: Path):
    for folder, content in (("a", "one"), ("b", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "token").write_text(content)
    (tmp_path / "..data").symlink_to("a")
    (tmp_path / "token").symlink_to("..data/token")
    server = Server()
    access = HttpAccess(bearer_token_file=str(tmp_path / "token"))
    async with serving(server) as url, HttpClient() as client:
        await ask(client, url, access)
        (tmp_path / "tmp").symlink_to("b")
        os.replace(tmp_path / "tmp", tmp_path / "..data")
        await ask(client, url, access, at=6.0)
    assert [head["Authorization"] for head in server.heads] == ["Bearer one", "Bearer two"]


async def test_a_refused_token_is_read_again_at_once_and_the_request_repeated(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("one")
    access = HttpAccess(bearer_token_file=str(token))
    async with serving(Server(expecting("one", "two"))) as url, HttpClient() as client:
        assert (await ask(client, url, access)).status == 200
        token.write_text("two")
        assert (await ask(client, url, access)).status == 200


async def test_a_refused_token_that_has_not_changed_is_not_sent_twice(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("wrong")
    server = Server(expecting("right"))
    async with serving(server) as url, HttpClient() as client:
        assert (await ask(client, url, HttpAccess(bearer_token_file=str(token)))).status == 401
        assert (await ask(client, url, HttpAccess(bearer_token="wrong"))).status == 401
    assert len(server.heads) == 2


async def test_a_token_file_that_vanishes_leaves_the_last_token_in_force_and_is_logged_once(tmp_path: Path):
    token = tmp_path / "token"
    token.write_text("hunter2")
    access = HttpAccess(bearer_token_file=str(token))
    async with serving(Server(expecting("hunter2"))) as url, HttpClient() as client:
        with capture_logs() as logs:
            assert (await ask(client, url, access)).status == 200
            token.rename(tmp_path / "away")
            assert [(await ask(client, url, access, at=10.0 * n)).status for n in (1, 2, 3)] == [200] * 3
            (tmp_path / "away").rename(token)
            assert (await ask(client, url, access, at=40.0)).status == 200
    assert [log["event"] for log in logs] == [
        "file can't be used, what it last held stays in force",
        "file can be read again",
    ]
    assert "hunter2" not in str(logs)


@pytest.mark.parametrize(
    ("content", "cause"),
    [(None, "no such file or directory"), (b"", "is empty"), (b"a\nb", "more than one line"), (b"\xff", "not UTF-8")],
)
async def test_a_token_file_that_never_held_one_is_told_as_unauthorized(
    tmp_path: Path, content: bytes | None, cause: str
):
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)
    server = Server()
    async with serving(server) as url, HttpClient() as client:
        with pytest.raises(SourceError) as caught:
            await ask(client, url, HttpAccess(bearer_token_file=str(token)))
        assert caught.value.reason is Reason.UNAUTHORIZED
        assert cause in caught.value.detail
        token.write_text("now")
        assert (await ask(client, url, HttpAccess(bearer_token_file=str(token)), at=5.0)).status == 200
    assert len(server.heads) == 1


async def test_a_pipe_in_the_place_of_a_token_file_does_not_hang(tmp_path: Path):
    os.mkfifo(tmp_path / "token")
    async with serving(Server()) as url, HttpClient() as client:
        with pytest.raises(SourceError, match="no regular file"):
            await ask(client, url, HttpAccess(bearer_token_file=str(tmp_path / "token")))


async def test_a_server_that_restarts_between_two_requests_is_asked_without_a_failure():
    server = Server()
    async with HttpClient() as client:
        async with serving(server) as url:
            assert (await ask(client, url)).body == b"hello"
        async with serving(server) as url:  # on the same port
            assert (await ask(client, url)).body == b"hello"


async def test_an_idle_connection_that_dies_under_the_next_request_is_replaced_at_once():
    def answer(_: Head) -> bytes:
        if len(server.heads) == 2:  # the second request, on the connection of the first
            server.connections[0].transport.abort()
        return OK

    server = Server(answer)
    async with serving(server) as url, HttpClient() as client:
        assert [(await ask(client, url)).body for _ in range(2)] == [b"hello"] * 2
    assert len(server.heads) == 3
    assert len(server.connections) == 2


async def test_a_connection_is_used_again():
    server = Server()
    async with serving(server) as url, HttpClient() as client:
        for _ in range(5):
            await ask(client, url)
    assert len(server.connections) == 1


async def test_one_host_never_gets_more_than_its_share_of_connections():
    release = asyncio.Event()
    open_now = most = 0

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await reader.readuntil(b"\r\n\r\n")
        await release.wait()
        open_now -= 1
        writer.write(OK)
        writer.close()

    listening = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with HttpClient() as client:
        asked = [asyncio.create_task(ask(client, url)) for _ in range(3 * MAX_CONNECTIONS_PER_HOST)]
        while most < MAX_CONNECTIONS_PER_HOST:
            await asyncio.sleep(0.01)
        release.set()
        assert {(await task).body for task in asked} == {b"hello"}
    listening.close()
    assert most == MAX_CONNECTIONS_PER_HOST


async def test_proxy_variables_are_not_used_and_the_log_names_them_without_their_values(
    monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("http_proxy", f"http://me:hunter2@127.0.0.1:{unused_tcp_port}")
    monkeypatch.setenv("NO_PROXY", "example.com")
    with capture_logs() as logs:
        async with serving(Server()) as url, HttpClient() as client:
            for _ in range(2):
                assert (await ask(client, url)).body == b"hello"
    assert [log["variables"] for log in logs] == [["http_proxy"]]
    assert "hunter2" not in str(logs)


async def test_a_redirect_to_another_origin_is_not_followed_and_gets_no_token():
    other = Server()
    async with serving(other) as elsewhere:
        moved = f"HTTP/1.1 302 Moved\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n".encode()
        async with serving(Server(lambda _: moved)) as url, HttpClient() as client:
            with pytest.raises(SourceError, match="redirects to"):
                await ask(client, url, HttpAccess(bearer_token="secret"))
    assert other.heads == []


async def test_a_name_server_that_hangs_takes_no_thread_of_the_loops_own(monkeypatch: pytest.MonkeyPatch):
    release = threading.Event()

    def hang(*_: object) -> None:
        release.wait(10)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with HttpClient() as client:
        asked = [
            asyncio.create_task(
                client.fetch(f"http://h{n}.example", timeout_seconds=0.2, max_body_bytes=1, now=lambda: 0.0)
            )
            for n in range(100)
        ]
        await asyncio.sleep(0.05)  # every look-up has begun
        async with asyncio.timeout(5):
            assert await asyncio.to_thread(lambda: "free") == "free"
            outcomes = await asyncio.gather(*asked, return_exceptions=True)
        release.set()
    assert {error.reason for error in outcomes if isinstance(error, SourceError)} == {Reason.TIMEOUT}
    assert len(outcomes) == 100


async def test_a_link_local_address_keeps_the_number_of_its_interface(monkeypatch: pytest.MonkeyPatch):
    found = (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 80, 0, 2))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: [found])
    resolver = Resolver()
    assert [answer["host"] for answer in await resolver.resolve("box.local", 80)] == ["fe80::1%2"]
    await resolver.close()


async def read_lines(client: HttpClient, url: str, into: list[bytes]) -> None:
    async with client.open(url, now=0.0, headers=JSON) as response:
        async for line in response.content:
            into.append(line)  # noqa: PERF401 - what came before the end is looked at


async def test_a_stream_is_read_as_it_comes_and_its_end_in_mid_air_is_a_failure_of_the_closed_set():
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert "Accept: application/json" in head
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\n\r\n2\r\nb\n\r\n")
        writer.close()

    listening = await asyncio.start_server(drip, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    seen: list[bytes] = []
    async with HttpClient() as client:
        with pytest.raises(SourceError) as caught:
            await read_lines(client, url, seen)
    listening.close()
    assert seen == [b"a\n", b"b\n"]
    assert caught.value.reason is Reason.TRUNCATED


async def test_a_closed_client_can_be_used_again():
    async with serving(Server()) as url:
        client = HttpClient()
        for _ in range(2):
            assert (await ask(client, url)).body == b"hello"
            await client.close()


def test_an_access_prints_no_secret():
    access = HttpAccess(bearer_token="hunter2", basic_password="hunter2", headers={"X-Key": "hunter2"})
    assert "hunter2" not in repr(access)


async def test_a_server_that_answers_without_end_is_left_and_holds_up_nobody() -> None:
    """aiohttp reads over interim answers as long as they come: the loop stood still, and its deadlines with it."""

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
                await writer.drain()
        writer.close()

    listening = await asyncio.start_server(flood, "127.0.0.1", 0)
    async with listening, HttpClient() as client:
        with pytest.raises(SourceError) as caught:
            await ask(client, f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/")
    assert caught.value.reason is Reason.NOT_EXPOSITION


async def test_an_interim_answer_before_the_real_one_is_read_over() -> None:
    async with serving(Server(lambda _: b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK)) as url, HttpClient() as client:
        assert (await ask(client, url)).body == b"hello"


async def test_a_post_over_a_connection_that_had_died_is_sent_once_more_and_no_more_than_that() -> None:
    bodies: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Takes one request on each connection, and hangs up in the middle of the second."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            bodies.append(await reader.readexactly(4))
            if dying:
                writer.transport.abort()
                return
            writer.write(OK)
            await reader.readuntil(b"\r\n\r\n")
            writer.transport.abort()

    dying = False
    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/api"
    how = {"timeout_seconds": 5.0, "max_body_bytes": 100, "now": lambda: 0.0}
    async with listening, HttpClient() as client:
        for _ in range(2):
            assert (await client.post(url, b"[{}]", **how)).status == 200
        dying = True
        with pytest.raises(SourceError) as error:
            await client.post(url, b"[{}]", **how)
    assert error.value.reason is Reason.TRUNCATED
    assert len(bodies) == 3, "each once more, on a new connection, and then no more"


async def test_a_post_follows_no_redirect_and_takes_its_token_with_it() -> None:
    server = Server(lambda head: b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n")
    async with serving(server) as url, HttpClient() as client:
        access = HttpAccess(bearer_token="sesame")
        answer = await client.post(url, b"", timeout_seconds=5, max_body_bytes=100, now=lambda: 0.0, access=access)
    assert answer.status == 302
    assert [head["Authorization"] for head in server.heads] == ["Bearer sesame"]
