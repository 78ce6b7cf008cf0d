"""Bodies that no engine should send: real expositions with bytes changed, lines moved, tokens sown, and plain noise.

A program: reads INPUTS of them from SEED on, within a limit of memory, and prints a JSON line per round. It ends with
an error that shows the body when anything but ``SourceError`` escapes, when one body takes seconds, or when what is
remembered of a body changes what the next one says.
"""

import contextlib
import json
import random
import resource
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil

from pinchpoint.snapshot import EngineReading, EngineTarget, Reason
from pinchpoint.sources.engine import EpochTracker, reading_from_body
from pinchpoint.sources.engine.recall import Recall
from pinchpoint.sources.http import SourceError

DATA = Path(__file__).parents[2] / "data"
HANG_SECONDS = 10  # a whole real body takes milliseconds
MEMORY_BYTES = 2 * 2**30
ROUNDS = 10
TARGET = EngineTarget(engine="fuzzed", url="http://127.0.0.1:1")
CONTENT_TYPES = (
    None,
    "text/plain; version=0.0.4",
    "text/plain; version=1.0.0; charset=utf-8",
    "application/openmetrics-text; version=1.0.0",
    "application/json",
    "\xff;;=",
)
TOKENS = (
    b'{ } " \\ , = # \n \r \t \0 {} {{ }} \\" \\n le="+Inf" le="nan" le="" engine="0" engine="" model_name= '
    b"NaN -NaN +Inf -Inf 1e308 -1e308 1e-320 0x1p3 1_000 9999999999999999999999 1 2 -0 \xd9\xa3 "
    b"# EOF # TYPE # HELP vllm: sglang: tgi_ llamacpp: lmdeploy: trtllm_ nv_ dynamo_ ray_ "
    b"_total _bucket _sum _count _created \xff \xc3\x28 \xe2\x80\xa8 \xef\xbb\xbf"
).split(b" ")


def corpus() -> list[bytes]:
    """Every exposition in the test data."""
    return [
        path.read_bytes() for path in sorted(DATA.rglob("*")) if path.suffix in (".prom", ".txt") and path.is_file()
    ]


def body(chance: random.Random, real: list[bytes]) -> bytes:
    """One input: mostly a few mutated lines, because those are read fast and hold the same rules as many."""
    kind = chance.random()
    if kind < 0.02:
        return _mutated(chance, chance.choice(real), real)
    if kind < 0.75:
        lines = chance.choice(real).split(b"\n")
        start = chance.randrange(len(lines))
        return _mutated(chance, b"\n".join(lines[start : start + chance.randint(1, 12)]) + b"\n", real)
    if kind < 0.95:
        return b"".join(chance.choice(TOKENS) + chance.choice((b"", b" ", b"\n")) for _ in range(chance.randint(1, 40)))
    return chance.randbytes(chance.randint(0, 300))


def _mutated(chance: random.Random, text: bytes, real: list[bytes]) -> bytes:
    body = bytearray(text)
    for _ in range(chance.randint(0, 6)):
        here = chance.randrange(len(body) + 1)
        there = min(len(body), here + chance.randint(0, 60))
        match chance.randrange(7):
            case 0 if body:
                body[here % len(body)] = chance.randrange(256)
            case 1:
                del body[here:there]
            case 2:
                body[here:here] = chance.choice(TOKENS)
            case 3:
                body[here:here] = bytes(body[here:there]) * chance.randint(1, 30)
            case 4:
                other = chance.choice(real)
                cut = chance.randrange(len(other))
                body[here:there] = other[cut : cut + chance.randint(1, 200)]
            case 5:
                del body[here:]
            case _:
                body[here:there] = bytes(reversed(body[here:there]))
    return bytes(body)


@contextlib.contextmanager
def _hang_is_an_error() -> Iterator[None]:
    def raise_timeout(*_: object) -> None:
        raise TimeoutError(f"one body took more than {HANG_SECONDS} s")

    signal.signal(signal.SIGALRM, raise_timeout)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)


def _outcome(sent: bytes, content_type: str | None, number: int, recall: Recall | None) -> EngineReading | Reason:
    try:
        return reading_from_body(TARGET, sent, content_type, float(number), recall)
    except SourceError as error:
        return error.reason


def main(inputs: int, seed: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    real, outcomes = corpus(), Counter[str]()
    epochs, recall = EpochTracker(), Recall()
    for number in range(inputs):
        chance = random.Random(seed + number)
        sent, content_type = body(chance, real), chance.choice(CONTENT_TYPES)
        try:
            with _hang_is_an_error():
                outcome = _outcome(sent, content_type, number, None)
                if isinstance(outcome, EngineReading):
                    epochs.stamp(outcome)
                if chance.random() < 0.25:  # what is remembered of one body must not change what the next says
                    _outcome(sent, content_type, number, recall)
                    sent = bytes(
                        chance.choice(b"0123456789") if chance.random() < 0.3 and 48 <= c < 58 else c for c in sent
                    )
                    assert _outcome(sent, content_type, number, recall) == _outcome(sent, content_type, number, None)
            outcomes["reading" if isinstance(outcome, EngineReading) else outcome] += 1
        except BaseException:
            print(f"seed {seed + number}, {content_type!r}: {sent[:2000]!r}", file=sys.stderr)
            raise
        if (number + 1) % max(1, inputs // ROUNDS) == 0:
            memory = psutil.Process().memory_info().rss
            print(json.dumps({"inputs": number + 1, "rss_bytes": memory, "outcomes": dict(outcomes)}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
