"""The states that a real engine is driven into, and what pinchpoint must say in each."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.real_vllm.load import Load


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One state: how it is made, and what must be read of it once it is steady. Ranges are of means, ends included."""

    name: str
    bottleneck: str
    seconds: float
    load: Load | None = None
    running: tuple[float, float] = (0.0, 0.0)
    waiting: tuple[float, float] = (0.0, 0.0)
    kv: tuple[float, float] = (0.0, 0.0)
    refuses: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One start of the engine and the states it goes through."""

    max_num_seqs: int
    flags: Sequence[str] = ()
    states: Sequence[State]
    replicas: int = 1
    killed: bool = False  # in the end, in mid-stream


RUNS = (
    Run(
        max_num_seqs=16,
        killed=True,
        states=(
            State(name="idle, fresh", bottleneck="idle", seconds=15),
            State(
                name="moderate",
                bottleneck="healthy",
                seconds=25,
                load=Load(clients=4, prompt_words=60, max_tokens=100, pause_seconds=0.3),
                running=(1.5, 4),
                waiting=(0, 0.5),
                kv=(0, 0.5),
            ),
            State(name="idle, after load", bottleneck="idle", seconds=20),
        ),
    ),
    Run(
        flags=("--num-gpu-blocks-override", "40"),  # of 128 tokens
        max_num_seqs=64,
        states=(
            State(
                name="KV-saturated",
                bottleneck="kv_capacity",
                seconds=35,
                load=Load(clients=28, prompt_words=90, max_tokens=300),
                running=(5, 20),
                waiting=(8, 23),
                kv=(0.75, 1),
            ),
        ),
    ),
    Run(
        flags=("--max-num-queued-reqs", "16"),
        max_num_seqs=4,
        states=(
            State(
                name="slot-limited",
                bottleneck="scheduler",
                seconds=30,
                load=Load(clients=16, prompt_words=60, max_tokens=150),
                running=(3.5, 4),
                waiting=(11, 12),
                kv=(0, 0.5),
            ),
            State(
                name="turning requests away",
                bottleneck="scheduler",
                seconds=25,
                load=Load(clients=32, prompt_words=60, max_tokens=150),
                running=(3.5, 4),
                waiting=(10, 16),
                kv=(0, 0.5),
                refuses=True,
            ),
        ),
    ),
)

# Other shapes of the same engine: each of its parts reports for itself, and pinchpoint has to add up.
SHAPES = (
    Run(
        max_num_seqs=16,
        flags=("--api-server-count", "2"),
        states=(
            State(
                name="two API servers",
                bottleneck="healthy",
                seconds=25,
                load=Load(clients=4, prompt_words=60, max_tokens=100, pause_seconds=0.3),
                running=(1.5, 4),
                waiting=(0, 0.5),
                kv=(0, 0.5),
            ),
        ),
    ),
    Run(
        max_num_seqs=2,
        flags=("--data-parallel-size", "2"),
        replicas=2,
        states=(
            State(
                name="two replicas, slot-limited",
                bottleneck="scheduler",
                seconds=40,
                load=Load(clients=12, prompt_words=60, max_tokens=100),
                running=(3.5, 4),
                waiting=(7, 8),
                kv=(0, 0.5),
            ),
        ),
    ),
)
