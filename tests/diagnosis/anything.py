"""Windows of anything: what no engine, card, host or client should show, and some day one will."""

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pinchpoint import diagnosis
from pinchpoint.physics import CONFIGS
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineHost,
    EngineReading,
    GpuProcess,
    GpuReading,
    GpuState,
    Histogram,
    HostReading,
    NvLink,
    PeerLink,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    ReplicaReading,
    Slo,
    Snapshot,
    Window,
    compared,
)

INF = float("inf")
number = (
    st.none()
    | st.floats()
    | st.floats(0, 1)
    | st.integers(-10, 10_000).map(float)
    | st.sampled_from([0.0, 1.0, 1e308, -1.0, 1e-308])
)
seconds = st.none() | st.floats(0, 100) | st.floats()
histogram = st.none() | st.builds(
    lambda counts, total: Histogram((1.0, 10.0, INF), tuple(counts), total, counts[-1]),
    st.lists(st.floats(0, 1e6), min_size=3, max_size=3).map(sorted),
    st.floats(),
)
names = st.sampled_from(["0", "1"])


def mapping(*keys: str) -> st.SearchStrategy[Mapping[str, float]]:
    return st.dictionaries(st.sampled_from(keys), st.floats() | st.floats(0, 2e9))


_SOURCES = Path(diagnosis.__file__).parent.rglob("*.py")
READ = {name for path in _SOURCES for name in re.findall(r"\.(\w+)", path.read_text())}  # the rest only costs time


def every(kind: type[Any], **told: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A value of ``kind``: its optional numbers and histograms that a diagnosis reads are anything, others ``told``."""
    found: dict[str, st.SearchStrategy[Any]] = {}
    for field in (each for each in fields(kind) if each.name in READ):
        if field.type in ("float | None", float | None):
            found[field.name] = number
        elif field.type in ("Histogram | None", Histogram | None):
            found[field.name] = histogram
    return st.builds(kind, **{**found, **told})


replica = every(
    ReplicaReading,
    replica=names,
    requests_waiting_by_reason=mapping("capacity", "deferred"),
    prompt_tokens_by_source_total=mapping("local_compute", "local_cache_hit"),
    awake=st.none() | st.booleans(),
)
gpu = every(
    GpuReading,
    gpu=names,
    uuid=names.map(lambda name: f"GPU-{name}"),
    at=st.just(0.0),
    up=st.booleans(),
    state=st.sampled_from(list(GpuState)),
    name=st.sampled_from([None, "NVIDIA H100 80GB HBM3", "NVIDIA A10", "nonsense"]),
    clock_hertz=mapping("sm", "graphics"),
    clock_max_hertz=mapping("sm", "graphics"),
    throttle_active=mapping("hw_slowdown", "hw_thermal_slowdown", "sw_power_cap"),
    xid_errors_total=mapping("79", "31"),
    remapped_rows=mapping("pending", "failure"),
    ecc_errors_total=mapping("uncorrectable"),
    recovery_action=st.sampled_from([None, "none", "gpu_reset"]),
    nvlinks=st.lists(st.builds(NvLink, link=names, up=st.none() | st.booleans()), max_size=2).map(tuple),
    processes=st.lists(
        st.builds(GpuProcess, pid=st.integers(1, 3), kind=st.just("compute"), memory_bytes=number), max_size=2
    ).map(tuple),
    mig_mode=st.none() | st.booleans(),
)
model_config = st.sampled_from(sorted(CONFIGS)).map(lambda name: CONFIGS[name]) | st.dictionaries(
    st.sampled_from(
        ["num_parameters", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
         "num_experts", "vocab_size", "intermediate_size", "torch_dtype", "text_config"]
    ),
    st.integers() | st.floats() | st.text(max_size=3) | st.none() | st.just({}),
)  # fmt: skip
small = st.none() | st.integers(-1, 300)
facts = st.builds(
    EngineFacts,
    kind=st.sampled_from(["", "vllm", "sglang", "nobody's"]),
    max_num_seqs=small,
    max_num_batched_tokens=small,
    max_model_len=small,
    tensor_parallel_size=st.none() | st.integers(-1, 8),
    pipeline_parallel_size=st.none() | st.integers(-1, 2),
    data_parallel_size=st.none() | st.integers(-1, 4),
    gpu_memory_utilization=number,
    quantization=st.sampled_from([None, "fp8", "awq", "nonsense"]),
    kv_cache_dtype=st.sampled_from([None, "auto", "fp8", "nonsense"]),
    kv_cache_capacity_tokens=number,
    enable_prefix_caching=st.none() | st.booleans(),
    gpu_name=st.sampled_from([None, "NVIDIA H200", "nonsense"]),
    model_config=model_config,
)
cpu = every(EngineHost)
host = every(HostReading, at=st.just(0.0), engines=st.dictionaries(st.sampled_from(["chat", "other"]), cpu, max_size=2))
link = st.builds(
    PeerLink,
    gpu=names,
    peer=names,
    link=st.sampled_from(["NV18", "NV0", "PIX", "SYS", "nonsense", ""]),
    p2p=st.sampled_from(["", "ok", "chipset_not_supported"]),
)


@st.composite
def probes(draw: st.DrawFn, target: str, now: float) -> list[ProbeReading]:
    """Those of one target, oldest first: some are longer than they are old."""
    placement = draw(st.sampled_from(Placement))
    return [
        ProbeReading(
            target=target,
            placement=placement,
            at=now - 3.0 * back,
            outcome=draw(st.sampled_from(ProbeOutcome)),
            engine=draw(st.sampled_from([None, "chat", "other"])),
            ttft_seconds=draw(seconds),
            ttfc_seconds=draw(seconds),
            tpot_seconds=draw(seconds),
            duration_seconds=draw(seconds),
            phases=draw(mapping("connect", "headers", "first_token", "generation")),
            completion_tokens=draw(st.none() | st.integers(-1, 100)),
            buffered=draw(st.booleans()),
            coalesced=draw(st.booleans()),
            compare_with=("b",) if target == "a" else (),
        )
        for back in reversed(range(draw(st.integers(0, 3))))
    ]


@st.composite
def windows(draw: st.DrawFn, most: int = 6) -> Window:
    """Up to ``most`` ticks, a second or minutes apart; the same readings may come again."""
    snapshots: list[Snapshot] = []
    at = 0.0
    for _ in range(draw(st.integers(0, most))):
        at += draw(st.sampled_from([1.0, 1.0, 1.0, 5.0, 90.0]))
        reading = EngineReading(
            engine="chat",
            at=at,
            replicas=tuple({one.replica: one for one in draw(st.lists(replica, max_size=3))}.values()),
            facts=draw(facts),
            slo=Slo(ttft_seconds=draw(st.sampled_from([0.1, 2.0])), tpot_seconds=draw(st.sampled_from([0.005, 0.05]))),
            gpus=draw(st.sampled_from([(), ("0",), ("0", "1"), ("7",)])),
            gpus_by_replica=draw(st.sampled_from([{}, {"0": ("0",), "1": ("1",)}])),
            epoch=draw(st.sampled_from(["a", "a", "a", "b"])),
            tokens_at_end=draw(st.booleans()),
            doubtful=draw(st.booleans()),
        )
        present = draw(st.integers(0, 4)) > 0
        told = [draw(probes(target, at)) for target in draw(st.sampled_from([(), ("a",), ("a", "b")]))]
        snapshots.append(
            Snapshot(
                at=at,
                engines=(reading,) if present else (),
                absences=() if present else (Absence("engine/chat", Reason.TIMEOUT, "late", at),),
                gpus=tuple({one.uuid: one for one in draw(st.lists(gpu, max_size=2))}.values()),
                probes=tuple(every_one[-1] for every_one in told if every_one),
                comparisons=compared(told, at),
                host=draw(st.none() | host),
                links=tuple(draw(st.lists(link, max_size=2))),
            )
        )
    return Window(600.0, tuple(snapshots))
