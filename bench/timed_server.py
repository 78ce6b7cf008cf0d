"""An OpenAI-compatible server in a process of its own that writes each token when it is due, and remembers when it did.

Token i is due at an absolute moment, so delays don't add up. Everything is kept in memory and handed out, once, at
``GET /truth``; nothing is logged. Run as a file: prints its port and serves until its standard input closes.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from time import perf_counter_ns
from typing import cast

try:
    from uvloop import new_event_loop
except ImportError:  # an extra
    from asyncio import new_event_loop

TTFT_SECONDS, TPOT_SECONDS = 0.100, 0.010
MARK_CHARACTERS = 16  # of the prompt, to know a request again

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_COMMON = {"id": "chatcmpl-0123456789abcdef", "object": "chat.completion.chunk", "created": 1, "model": "mock"}


def _chunk(*events: dict[str, object] | str) -> bytes:
    """Events as one chunk of the body, which is written, and so travels, in one piece."""
    texts = (event if isinstance(event, str) else json.dumps(_COMMON | event) for event in events)
    data = "".join(f"data: {text}\n\n" for text in texts).encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _delta(finish: str | None = None, **delta: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}


def _answer(tokens: int) -> list[bytes]:
    """What is written for each token: a role chunk comes with the first, usage and the end with the last."""
    pieces = [_chunk(_delta(content=f"w{number} ")) for number in range(tokens - 1)]
    usage = {"prompt_tokens": 100, "completion_tokens": tokens, "total_tokens": 100 + tokens}
    last = _chunk(_delta("length", content=f"w{tokens - 1}"))
    pieces.append(last + _chunk({"choices": [], "usage": usage}, "[DONE]") + b"0\r\n\r\n")
    pieces[0] = _chunk(_delta(role="assistant", content="")) + pieces[0]
    return pieces


class _Connection(asyncio.Protocol):
    def __init__(self, truths: list[dict[str, object]], answers: dict[int, list[bytes]]) -> None:
        self._truths, self._answers = truths, answers
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        at_ns = perf_counter_ns()
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0)
        if not blank or len(body) < size:
            return
        self._received = b""
        if head.startswith(b"POST"):
            self._begin(json.loads(body), at_ns)
        else:
            self._hand_out(head)

    def _hand_out(self, head: bytes) -> None:
        is_truth = b" /truth " in head
        body = json.dumps(self._truths if is_truth else {"object": "list", "data": [{"id": "mock"}]}).encode()
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        self._transport.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        if is_truth:
            self._truths.clear()

    def _begin(self, request: dict[str, object], at_ns: int) -> None:
        tokens = int(str(request["max_tokens"]))
        if tokens not in self._answers:
            self._answers[tokens] = _answer(tokens)
        messages = request["messages"]
        assert isinstance(messages, list)
        sent: list[int] = []
        self._truths.append({"mark": messages[0]["content"][:MARK_CHARACTERS], "request_ns": at_ns, "sent_ns": sent})
        self._transport.write(_HEAD)
        due = at_ns + round(TTFT_SECONDS * 1e9)
        self._wait(due, enumerate(self._answers[tokens]), due, sent)

    def _wait(self, due: int, pieces: Iterator[tuple[int, bytes]], first_due: int, sent: list[int]) -> None:
        self._loop.call_later(max(0, due - perf_counter_ns()) / 1e9, self._write, pieces, first_due, sent)

    def _write(self, pieces: Iterator[tuple[int, bytes]], first_due: int, sent: list[int]) -> None:
        number, piece = next(pieces, (-1, b""))
        if number < 0 or self._transport.is_closing():
            return
        sent.append(perf_counter_ns())
        self._transport.write(piece)
        self._wait(first_due + round((number + 1) * TPOT_SECONDS * 1e9), pieces, first_due, sent)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    truths: list[dict[str, object]] = []
    answers: dict[int, list[bytes]] = {}
    server = await loop.create_server(lambda: _Connection(truths, answers), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.Runner(loop_factory=new_event_loop).run(_serve())
