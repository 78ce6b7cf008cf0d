"""The stories a simulated node can play: who asks what of which engine, which card is ill, and what should be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.physics import GPUS, LLAMA_3_3_70B, QWEN_2_5_14B
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.node.cards import CardFault
from pinchpoint.simulator.node.workload import Lengths, Workload

_H100 = GPUS["NVIDIA H100 80GB HBM3"]

# A 70B model in bf16 on two 80 GB cards is a common choice, and leaves little for the KV cache: about 31,000 tokens.
CHAT = EngineSpec(
    name="chat-llama3.3-70b",
    model="meta-llama/Llama-3.3-70B-Instruct",
    model_config=LLAMA_3_3_70B,
    gpu=_H100,
    gpus=("0", "1"),
)
# A 14B model on the same cards has room for 600,000 tokens, and somebody has set --max-num-seqs low.
RAG = EngineSpec(
    name="rag-qwen2.5-14b",
    model="Qwen/Qwen2.5-14B-Instruct",
    model_config=QWEN_2_5_14B,
    gpu=_H100,
    gpus=("2", "3"),
    max_num_seqs=32,
    max_model_len=16384,
)
ENGINES = (CHAT, RAG)

_CHATTING = Workload(
    arrivals_per_second=1.0,
    prompt=Lengths(median=600),
    output=Lengths(median=220, high=500),
    prefix_tokens=400,
    prefix_share=0.8,
)
_LOOKING_UP = Workload(
    arrivals_per_second=1.5,
    prompt=Lengths(median=1500),
    output=Lengths(median=150, high=600),
    prefix_tokens=512,
    prefix_share=0.9,
)
_NOBODY = Workload()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story. ``engine`` is the one it happens to; ``story`` what an observer should find, in one sentence."""

    name: str
    story: str
    engine: str
    workloads: Mapping[str, Workload]
    faults: Mapping[str, CardFault] = field(default_factory=dict)  # by GPU index


SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario(
            name="healthy",
            story="Both engines answer within their promise and have room.",
            engine=CHAT.name,
            workloads={CHAT.name: _CHATTING, RAG.name: _LOOKING_UP},
        ),
        Scenario(
            name="memory_wall",
            story="Long chats fill the 70B model's small KV cache: requests wait and are preempted, slots stay free.",
            engine=CHAT.name,
            workloads={
                CHAT.name: Workload(
                    clients=56,
                    think_seconds=1.0,
                    prompt=Lengths(median=800),
                    output=Lengths(median=500, sigma=0.6, low=60, high=1200),
                    prefix_tokens=400,
                    prefix_share=0.8,
                ),
                RAG.name: _LOOKING_UP,
            },
        ),
        Scenario(
            name="slots_exhausted",
            story="More users than --max-num-seqs: requests queue although the KV cache is nearly empty.",
            engine=RAG.name,
            workloads={
                CHAT.name: _CHATTING,
                RAG.name: Workload(
                    clients=90,
                    think_seconds=1.0,
                    prompt=Lengths(median=700),
                    output=Lengths(median=500, high=1500),
                ),
            },
        ),
        Scenario(
            name="prefill_storm",
            story="Long documents, short answers: the tensor cores are the limit, slots and KV cache have room.",
            engine=RAG.name,
            workloads={
                CHAT.name: _CHATTING,
                RAG.name: Workload(
                    clients=60,
                    think_seconds=1.0,
                    prompt=Lengths(median=6000, sigma=0.3, high=14000),
                    output=Lengths(median=10, high=30),
                ),
            },
        ),
        Scenario(
            name="throttled_gpu",
            story="One card of a pair runs too hot and slows its clocks; both ranks wait for it, every token is late.",
            engine=CHAT.name,
            workloads={CHAT.name: _CHATTING, RAG.name: _LOOKING_UP},
            faults={"1": CardFault(clock_ratio=0.4)},
        ),
        Scenario(
            name="idle",
            story="Nobody asks anything.",
            engine=CHAT.name,
            workloads={CHAT.name: _NOBODY, RAG.name: _NOBODY},
        ),
    )
}
