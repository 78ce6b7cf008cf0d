"""The stories a simulated node can play: who asks what of which service, what is ill, and what should be seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pinchpoint.physics import GPUS, LLAMA_3_1_8B, LLAMA_3_3_70B, QWEN_2_5_14B
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.node.workload import Lengths, Workload
from pinchpoint.simulator.world import Gateway, Host, Leak, Probes, Routing, Stall, Throttle, World
from pinchpoint.snapshot import Slo

_H100 = GPUS["NVIDIA H100 80GB HBM3"]
_UNPROBED = Probes(every_seconds=0.0)  # whoever watches the node sends its own

# A 70B model in bf16 on two 80 GB cards is a common choice, and leaves little for the KV cache: about 31,000 tokens.
CHAT = World(
    seed=0,
    engine=EngineSpec(
        name="chat-llama3.3-70b",
        model="meta-llama/Llama-3.3-70B-Instruct",
        model_config=LLAMA_3_3_70B,
        gpu=_H100,
        gpus=("0", "1"),
    ),
    workload=Workload(
        arrivals_per_second=1.0,
        prompt=Lengths(median=600),
        output=Lengths(median=220, high=500),
        prefix_tokens=400,
        prefix_share=0.8,
    ),
    probes=_UNPROBED,
)
# A 14B model on the same cards has room for 600,000 tokens, and somebody has set --max-num-seqs low.
RAG = World(
    seed=0,
    engine=EngineSpec(
        name="rag-qwen2.5-14b",
        model="Qwen/Qwen2.5-14B-Instruct",
        model_config=QWEN_2_5_14B,
        gpu=_H100,
        gpus=("2", "3"),
        max_num_seqs=32,
        max_model_len=16384,
    ),
    workload=Workload(
        arrivals_per_second=1.5,
        prompt=Lengths(median=1500),
        output=Lengths(median=150, high=600),
        prefix_tokens=512,
        prefix_share=0.9,
    ),
    probes=_UNPROBED,
)
# Two small replicas for completion in an editor, which promises a quick pace.
CODE = World(
    seed=0,
    engine=EngineSpec(
        name="code-llama3.1-8b",
        model="meta-llama/Llama-3.1-8B-Instruct",
        model_config=LLAMA_3_1_8B,
        gpu=_H100,
        gpus=("4",),
        max_num_seqs=64,
        max_model_len=32768,
    ),
    replicas=2,
    workload=Workload(arrivals_per_second=4.0, prompt=Lengths(median=500), output=Lengths(median=80, high=300)),
    slo=Slo(ttft_seconds=1.0, tpot_seconds=0.02),
    probes=_UNPROBED,
)
# Two cards without NVLink, each under a CPU of its own: what they tell each other goes through both.
MAIL = World(
    seed=0,
    engine=EngineSpec(
        name="mail-qwen2.5-14b",
        model="Qwen/Qwen2.5-14B-Instruct",
        model_config=QWEN_2_5_14B,
        gpu=GPUS["NVIDIA L40S"],
        gpus=("6", "7"),
        link="SYS",
        max_model_len=16384,
    ),
    workload=Workload(arrivals_per_second=0.3, prompt=Lengths(median=800), output=Lengths(median=120, high=400)),
    probes=_UNPROBED,
)
SERVICES: Mapping[str, World] = {world.engine.name: world for world in (CHAT, RAG, CODE, MAIL)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One story. ``service`` is the one it happens to; ``story`` what an observer should find, in one sentence."""

    name: str
    story: str
    service: str
    worlds: Mapping[str, World] = field(default_factory=dict)


def _story(name: str, story: str, world: World) -> Scenario:
    """Everybody else has a quiet day."""
    return Scenario(name=name, story=story, service=world.engine.name, worlds={**SERVICES, world.engine.name: world})


_NOBODY = {name: replace(world, workload=Workload()) for name, world in SERVICES.items()}

SCENARIOS: Mapping[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _story("healthy", "All answer within their promise and have room.", CHAT),
        _story(
            "memory_wall",
            "Long chats fill the 70B model's small KV cache: requests wait and are preempted, slots stay free.",
            replace(
                CHAT,
                workload=Workload(
                    clients=56,
                    think_seconds=1.0,
                    prompt=Lengths(median=800),
                    output=Lengths(median=500, sigma=0.6, low=60, high=1200),
                    prefix_tokens=400,
                    prefix_share=0.8,
                ),
            ),
        ),
        _story(
            "slots_exhausted",
            "More users than --max-num-seqs: requests queue although the KV cache is nearly empty.",
            replace(
                RAG,
                workload=Workload(
                    clients=90, think_seconds=1.0, prompt=Lengths(median=700), output=Lengths(median=500, high=1500)
                ),
            ),
        ),
        _story(
            "prefill_storm",
            "Long documents, answers of a word: the tensor cores are the limit, slots and KV cache have room.",
            replace(
                RAG,
                workload=Workload(
                    clients=40,
                    think_seconds=1.0,
                    prompt=Lengths(median=6000, sigma=0.3, high=14000),
                    output=Lengths(median=1, high=1),
                ),
            ),
        ),
        _story(
            "bandwidth_bound",
            "Long contexts in a large batch: each token reads so much of the KV cache that all of them come late.",
            replace(
                CODE,
                workload=Workload(
                    clients=116,
                    think_seconds=0.5,
                    ramp_seconds=15.0,
                    prompt=Lengths(median=4500, sigma=0.2, high=8000),
                    output=Lengths(median=1800, low=600, high=3000),
                ),
            ),
        ),
        _story(
            "pcie_tp",
            "Long mails on two cards without NVLink: for half of each step they wait for what the other has computed.",
            replace(
                MAIL,
                workload=Workload(
                    clients=10,
                    think_seconds=1.5,
                    prompt=Lengths(median=3000, sigma=0.3, high=8000),
                    output=Lengths(median=1, high=1),
                ),
            ),
        ),
        _story(
            "throttled_gpu",
            "One card of a pair runs too hot and slows its clocks; both ranks wait for it, every token is late.",
            replace(CHAT, faults=(Throttle(gpu="1", clock_ratio=0.4),)),
        ),
        _story(
            "host_starved",
            "Half a core is all that the container gets: engine and workers use it up and stop, and so do the cards.",
            replace(CODE, host=Host(quota_cores=0.5)),
        ),
        _story(
            "buffering_gateway",
            "A proxy collects each answer before it passes it on: the engine is quick and nobody sees a token of it.",
            replace(CHAT, gateway=Gateway(delay_seconds=0.02, buffers=True)),
        ),
        _story(
            "uneven_replicas",
            "The balancer sends nearly everything to one of two replicas: one queues, the other rests.",
            replace(
                CODE,
                routing=Routing(policy="weighted", weights=(0.95, 0.05)),
                workload=Workload(
                    arrivals_per_second=14.0, prompt=Lengths(median=1500), output=Lengths(median=400, high=800)
                ),
            ),
        ),
        _story(
            "neighbour_leak",
            "Another process on a card takes more and more of its memory: soon the engine will find none.",
            replace(RAG, faults=(Leak(gpu="2", bytes_per_second=6e6),)),
        ),
        _story(
            "stalled",
            "An engine hangs: requests pile up before it, and not a token comes out.",
            replace(RAG, workload=replace(RAG.workload, arrivals_per_second=5.0), faults=(Stall(replica=0, at=5.0),)),
        ),
        _story("asleep", "An engine was put to sleep.", replace(_NOBODY[CODE.engine.name], asleep=True)),
        Scenario(name="idle", story="Nobody asks anything.", service=CHAT.engine.name, worlds=_NOBODY),
    )
}


def world_of(scenario: str, seed: int, service: str | None = None) -> World:
    """The world of one service in a scenario: of the one that it happens to, when none is named."""
    story = SCENARIOS[scenario]
    return replace(story.worlds[service or story.service], seed=seed, story=story.story)
