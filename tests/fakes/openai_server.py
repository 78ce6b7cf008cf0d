"""A scripted OpenAI-compatible server on a real socket, with control over every byte and when it is sent.

``async with FakeOpenAI(answer) as server``: each request is handed to ``answer(request, wire)``, which writes what it
likes. The ready-made answers below cover the ordinary cases (``streaming``, ``replying``) and the odd ones step by step
(``scripted``); ``server.requests`` and ``server.truths`` say what really happened.
"""

import asyncio
import json
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any, Self

PLAIN_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"  # the body goes on until the connection closes
)
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeRequest:
    method: str
    path: str
    headers: dict[str, str]
    text: str
    connection: int  # which of the server's connections it came on
    version: str
    at_ns: int

    @property
    def json(self) -> Any:
        return json.loads(self.text)


@dataclass(slots=True)
class Truth:
    """When the server really wrote its text."""

    request_ns: int
    sent_ns: list[int] = field(default_factory=list)

    @property
    def ttft_seconds(self) -> float:
        return (self.sent_ns[0] - self.request_ns) / 1e9

    @property
    def tpot_seconds(self) -> float:
        return (self.sent_ns[-1] - self.sent_ns[0]) / 1e9 / (len(self.sent_ns) - 1)


class Wire:
    """The server's end of one connection."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.closed = False
        self.chunked = True  # as HTTP/1.1 may be asked and HTTP/1.0 must not

    async def send(self, *pieces: bytes, pause: float = 0.0) -> None:
        """Write each piece by itself, with a pause after it."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()
            await asyncio.sleep(pause)

    async def head(self) -> None:
        """The head of a good stream."""
        await self.send(SSE_HEAD if self.chunked else PLAIN_HEAD)

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n" if self.chunked else data)

    async def event(self, *events: dict[str, Any] | str) -> None:
        """Send events in one write."""
        texts = [e if isinstance(e, str) else json.dumps(e) for e in events]
        await self.chunk("".join(f"data: {text}\n\n" for text in texts).encode())

    async def end(self) -> None:
        if self.chunked:
            await self.send(b"0\r\n\r\n")
        else:
            self.close()

    async def hang(self) -> None:
        """Say nothing more until the client goes away or the server stops."""
        await asyncio.sleep(3600)

    def close(self) -> None:
        self.closed = True
        self._writer.close()

    def reset(self) -> None:
        """Close with a RST instead of a FIN."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.closed = True
        self._writer.transport.abort()


Answer = Callable[[FakeRequest, Wire], Awaitable[None]]


class FakeOpenAI:
    """``tls`` makes it an https:// server; ``host`` is the address to listen at."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> None:
        self.answer = answer
        self._tls, self._host = tls, host
        self.requests: list[FakeRequest] = []
        self.truths: list[Truth] = []
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'http' if self._tls is None else 'https'}://{self._host}:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number, wire = self._connections, Wire(writer)
        try:
            while not wire.closed and (request := await _read_request(reader, number)) is not None:
                self.requests.append(request)
                wire.chunked = request.version != "HTTP/1.0"
                await self.answer(request, wire)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self._tasks.discard(task)


async def _read_request(reader: asyncio.StreamReader, connection: int) -> FakeRequest | None:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    method, path, version = lines[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return FakeRequest(
        method=method,
        path=path,
        headers=headers,
        text=body.decode(),
        connection=connection,
        version=version,
        at_ns=perf_counter_ns(),
    )


Step = Callable[[Wire], Awaitable[None]]


def scripted(*steps: Step) -> Answer:
    """An answer that takes these steps, in order."""

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        for step in steps:
            await step(wire)

    return answer


def head(wire: Wire) -> Awaitable[None]:
    """The head of a good stream."""
    return wire.head()


def say(*events: dict[str, Any] | str) -> Step:
    """Some events in one write."""
    return lambda wire: wire.event(*events)


def wait(seconds: float) -> Step:
    return lambda _wire: asyncio.sleep(seconds)


def end(wire: Wire) -> Awaitable[None]:
    return wire.end()


def hang(wire: Wire) -> Awaitable[None]:
    return wire.hang()


async def close(wire: Wire) -> None:
    wire.close()


async def reset(wire: Wire) -> None:
    await asyncio.sleep(0.02)  # let what was sent arrive: a RST overtakes it
    wire.reset()


def delta(finish: str | None = None, usage: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A chat completion chunk with one choice."""
    chunk: dict[str, Any] = {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }
    return chunk if usage is None else chunk | {"usage": usage}


def usage_chunk(completion: int, prompt: int = 100, **details: Any) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    return {"object": "chat.completion.chunk", "choices": [], "usage": counts | details}


def replying(status: int, body: str | dict[str, Any], content_type: str = "application/json", **headers: str) -> Answer:
    """An answer with a whole body. Header names are written with underscores."""
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    lines = [f"HTTP/1.1 {status} Scripted", f"Content-Type: {content_type}", f"Content-Length: {len(text)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def answer(_request: FakeRequest, wire: Wire) -> None:
        await wire.send("\r\n".join(lines).encode() + b"\r\n\r\n" + text)

    return answer


def streaming(
    server: "FakeOpenAI | None" = None, *, tokens: int = 12, ttft: float = 0.02, tpot: float = 0.002
) -> Answer:
    """A complete answer at absolute deadlines, as vLLM writes it: a role chunk, a chunk per token, usage, [DONE].

    With ``server``, its truth is recorded there.
    """

    async def answer(request: FakeRequest, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        begin, truth = loop.time(), Truth(request.at_ns)
        await wire.head()
        for i in range(tokens):
            await asyncio.sleep(max(0.0, begin + ttft + i * tpot - loop.time()))
            if i == 0:
                await wire.event(delta(role="assistant", content=""))
            truth.sent_ns.append(perf_counter_ns())
            await wire.event(delta(content=f"w{i} ", finish="length" if i == tokens - 1 else None))
        await wire.event(usage_chunk(tokens), "[DONE]")
        await wire.end()
        if server is not None:
            server.truths.append(truth)

    return answer
