"""kill -9 in the middle of a probe, a hundred times, with a server that counts what it really served."""

import asyncio
import json
import os
import random
import signal
import sys
from contextlib import suppress
from pathlib import Path

from pinchpoint.sources.probe.spend.book_file import NAME
from pinchpoint.sources.probe.spend.book_text import from_text
from tests.fakes.openai_server import SSE_HEAD, FakeOpenAI, FakeRequest, Wire, delta, usage_chunk
from tests.fakes.spender import REFUSED

KILLS = 100
TOKENS = 12


class Provider:
    """Bills the prompt when a request arrives, and each token when it is written."""

    def __init__(self) -> None:
        self.billed = 0
        self.complete = 0
        self.begun = 0
        self.written = 0

    async def writes(self, tokens: int) -> None:
        """Waits until that many more have been written."""
        goal = self.written + tokens
        while self.written < goal:
            await asyncio.sleep(0.0005)

    async def answer(self, request: FakeRequest, wire: Wire) -> None:
        prompt = len(request.json["messages"][0]["content"]) // 4
        self.billed += prompt
        self.begun += 1
        await wire.send(SSE_HEAD)
        for number in range(TOKENS):
            self.billed += 1
            self.written += 1
            await wire.event(delta(content=f"w{number} ", finish="length" if number == TOKENS - 1 else None))
            await asyncio.sleep(0.001)
        await wire.event(usage_chunk(TOKENS, prompt=prompt), "[DONE]")
        await wire.end()
        self.complete += 1


async def test_a_process_that_is_killed_a_hundred_times_passes_no_cap_and_never_breaks_its_ledger(
    tmp_path: Path,
) -> None:
    provider, chance, kills, refusals, counted = Provider(), random.Random(20261130), 0, 0, 0
    async with FakeOpenAI(provider.answer) as server:
        target = {"name": "t", "url": server.url, "model": "m", "placement": "hosted", "prompt_words": 0}
        spender = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.fakes.spender", str(tmp_path), json.dumps(target),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        while kills < KILLS:
            cap = counted + chance.choice([800, *[100_000] * 5])  # near, where one probe is left; or far
            spender.stdin.write(f"{cap}\n".encode())
            pid = int(await spender.stdout.readline())
            ended = asyncio.create_task(spender.stdout.readline())
            moment = asyncio.create_task(provider.writes(chance.randint(0, 3 * TOKENS)))
            await asyncio.wait({ended, moment}, return_when=asyncio.FIRST_COMPLETED)
            moment.cancel()
            await asyncio.sleep(chance.choice([0, 0, 0.002, 0.005]))  # also while the ledger is written
            with suppress(ProcessLookupError):  # it was refused meanwhile
                os.kill(pid, signal.SIGKILL)
            code = int(await ended)
            assert code in (-signal.SIGKILL, REFUSED)
            kills, refusals = kills + (code != REFUSED), refusals + (code == REFUSED)
            if (tmp_path / NAME).exists():
                book = from_text((tmp_path / NAME).read_text())
                counted = book.accounts["t"].days["2026-11-30"].tokens
            assert provider.billed <= counted <= cap
        spender.stdin.close()
        await spender.wait()
    assert provider.begun > provider.complete > 10, "some were killed in the middle, some were not"
    assert refusals > 0, "caps were reached"
    assert not list(tmp_path.glob("*.corrupt-*"))
    assert book.lost_on is None
