"""A load generator, and the ledger of what its requests got: what pinchpoint's reading is held against."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.real_vllm.server import MODEL

WORDS = ("import", "return", "value", "for", "each", "class", "self", "None", "while", "yield", "raise", "with", "not")
REQUEST_SECONDS = 300.0
PAUSE_AFTER_REFUSAL_SECONDS = 0.5


@dataclass(slots=True, kw_only=True)
class Request:
    """What one request got. Times are seconds on the monotonic clock."""

    started: float
    status: int = 0
    first_token: float | None = None
    ended: float | None = None
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finish_reason: str = ""
    error: str = ""

    @property
    def good(self) -> bool:
        return self.status == 200 and not self.error and bool(self.finish_reason)


@dataclass(slots=True, kw_only=True)
class Ledger:
    """Every request to one run of an engine."""

    requests: list[Request] = field(default_factory=list)

    @property
    def good(self) -> list[Request]:
        return [request for request in self.requests if request.good]

    @property
    def refused(self) -> int:
        """Turned away because the queue is full."""
        return sum(request.status == 503 for request in self.requests)

    @property
    def failed(self) -> list[Request]:
        return [request for request in self.requests if not request.good and request.status != 503]

    @property
    def prompt_tokens(self) -> int:
        return sum(request.prompt_tokens for request in self.good)

    @property
    def generation_tokens(self) -> int:
        return sum(request.generation_tokens for request in self.good)

    def finished(self, reason: str) -> int:
        return sum(request.finish_reason == reason for request in self.good)

    @property
    def ttft_mean_seconds(self) -> float:
        waits = [r.first_token - r.started for r in self.good if r.first_token is not None]
        return sum(waits) / len(waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Clients that each send one request after the other."""

    clients: int
    prompt_words: int
    max_tokens: int
    pause_seconds: float = 0.0

    async def drive(self, url: str, ledger: Ledger, ending: asyncio.Event) -> None:
        """Until ``ending`` is set; then the requests under way are waited for, so that none is cut off."""
        # A busy server may close a connection that it keeps alive just when the next request is on its way.
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:
            await asyncio.gather(*(self._client(session, ledger, ending, seed) for seed in range(self.clients)))

    async def _client(self, session: aiohttp.ClientSession, ledger: Ledger, ending: asyncio.Event, seed: int) -> None:
        chance = random.Random(seed)
        while not ending.is_set():
            words = chance.choices(WORDS, k=max(1, round(self.prompt_words * chance.uniform(0.6, 1.4))))
            request = Request(started=time.monotonic())
            ledger.requests.append(request)
            await _send(session, request, words, round(self.max_tokens * chance.uniform(0.6, 1.4)))
            pause = self.pause_seconds if request.good else PAUSE_AFTER_REFUSAL_SECONDS
            if pause:
                await asyncio.sleep(pause * chance.uniform(0.5, 1.5))


async def _send(session: aiohttp.ClientSession, request: Request, words: Sequence[str], max_tokens: int) -> None:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": " ".join(words)}],
        "max_tokens": max_tokens,
        "ignore_eos": True,  # random weights may end a text at once
        "temperature": 0.7,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    try:
        async with session.post("/v1/chat/completions", json=body) as response:
            request.status = response.status
            if response.status == 200:
                await _read(response, request)
    except (aiohttp.ClientError, TimeoutError) as error:
        request.error = type(error).__name__
    request.ended = time.monotonic()


async def _read(response: aiohttp.ClientResponse, request: Request) -> None:
    """Server-sent events. The headers come at once, so the first event with a choice is the first token."""
    async for line in response.content:
        if not line.startswith(b"data: {"):
            continue
        event = json.loads(line[6:])
        if error := event.get("error"):  # a full queue, too, is told after the headers have said 200
            request.error = error["message"]
            request.status = error.get("code") or request.status
        for choice in event.get("choices", ()):
            if request.first_token is None:
                request.first_token = time.monotonic()
            request.finish_reason = choice.get("finish_reason") or request.finish_reason
        if usage := event.get("usage"):
            request.prompt_tokens = usage["prompt_tokens"]
            request.generation_tokens = usage["completion_tokens"]
