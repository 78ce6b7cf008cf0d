"""The clients that are measured against the timed server: pinchpoint's prober and servebench. Each gives samples."""

import asyncio
import json
import subprocess
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.timed_server import TPOT_SECONDS, TTFT_SECONDS, new_event_loop
from pinchpoint.sources.probe import Prober, ProbeTargetSettings, prober
from pinchpoint.sources.probe.lateness import Lateness
from pinchpoint.sources.probe.timing import Timing, timing
from pinchpoint.sources.probe.tracing import Stamps
from pinchpoint.sources.probe.transcript import Transcript

TOKENS = 50
PEER_PACKAGE, PEER_VERSION = "servebench", "1.1.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """When the server read one request and wrote each of its tokens: ``perf_counter_ns``, which processes share."""

    mark: str
    request_ns: int
    sent_ns: list[int]

    @property
    def ttft(self) -> float:
        return (self.sent_ns[0] - self.request_ns) / 1e9

    @property
    def tpot(self) -> float:
        return (self.sent_ns[-1] - self.sent_ns[0]) / (len(self.sent_ns) - 1) / 1e9

    @property
    def latest(self) -> float:
        """By how many seconds the latest of its tokens missed its moment."""
        first_due = self.request_ns / 1e9 + TTFT_SECONDS
        return max(sent / 1e9 - first_due - number * TPOT_SECONDS for number, sent in enumerate(self.sent_ns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One request as a client saw it, in seconds, and the truth of the same request. ``None``: it gave no number."""

    truth: Truth
    ttft: float | None
    tpot: float | None
    lags: Sequence[float] = field(default=())  # of each chunk: from the server's write to the client's stamp


def take_truths(url: str) -> list[Truth]:
    """What the server remembers since it was last asked, in the order in which requests began."""
    with urllib.request.urlopen(f"{url}/truth", timeout=30) as answer:
        return sorted((Truth(**truth) for truth in json.load(answer)), key=lambda truth: truth.request_ns)


def pinchpoint(url: str, concurrency: int, requests: int) -> list[Sample]:
    """One ``Prober`` as the daemon has it, on the same kind of event loop, with ``concurrency`` probes at one time."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_probe(url, concurrency, requests))


async def _probe(url: str, concurrency: int, requests: int) -> list[Sample]:
    settings = ProbeTargetSettings(name="timed", url=url, model="mock", max_tokens=TOKENS)
    mark: ContextVar[str] = ContextVar("mark")
    transcripts: dict[str, Transcript] = {}
    readings: dict[str, Any] = {}

    def recording(stamps: Stamps, transcript: Transcript, lateness: Lateness) -> Timing:
        transcripts[mark.get()] = transcript
        return timing(stamps, transcript, lateness)

    numbers = iter(range(concurrency + requests))  # the first of each worker opens its connection
    probe = Prober(settings, nonce=mark.get)

    async def worker() -> None:
        for number in numbers:
            mark.set(f"{number:016d}")
            readings[mark.get()] = await probe.probe()

    with patch.object(prober, "timing", recording):  # chunks have no other way out
        await asyncio.gather(*(asyncio.create_task(worker()) for _ in range(concurrency)))
    await probe.close()
    samples = []
    for truth in (await asyncio.to_thread(take_truths, url))[concurrency:]:
        reading, stamps = readings[truth.mark], transcripts[truth.mark].text_ns
        if reading.outcome != "ok":
            raise RuntimeError(f"a probe failed: {reading.outcome}, {reading.detail}")
        lags = [(seen - sent) / 1e9 for seen, sent in zip(stamps, truth.sent_ns, strict=True)]
        samples.append(Sample(truth=truth, ttft=reading.ttft_seconds, tpot=reading.tpot_seconds, lags=lags))
    return samples


def servebench(program: Path, url: str, concurrency: int, requests: int) -> list[Sample]:
    """The same load by servebench. Its requests and the server's are paired in the order in which they began."""
    with tempfile.TemporaryDirectory(prefix="pinchpoint-bench-") as folder:
        out = Path(folder) / "run.json"
        command = [program, "run", "--url", f"{url}/v1", "--model", "mock", "--concurrency", str(concurrency)]
        command += ["--num-requests", str(concurrency + requests), "--input-len", "64", "--output-len", str(TOKENS)]
        done = subprocess.run([*command, "--out", out], capture_output=True, text=True, check=False)
        if not out.exists():
            raise RuntimeError(f"servebench failed: {(done.stderr or done.stdout).strip()[-500:]}")
        (level,) = json.loads(out.read_text())["levels"]
    seen: list[Mapping[str, Any]] = sorted(level["requests"], key=lambda request: request["start"])
    truths = take_truths(url)[-len(seen) :]  # its warm-up came before
    return [
        Sample(
            truth=truth,
            ttft=request["ttft"],
            tpot=(request["e2e"] - request["ttft"]) / (request["output_tokens"] - 1) if request["ok"] else None,
        )
        for truth, request in list(zip(truths, seen, strict=True))[concurrency:]
    ]
