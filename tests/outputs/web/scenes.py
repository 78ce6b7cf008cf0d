"""Scenes to look at and to test with: a node at a given hour, built from a few words."""

import math
from collections.abc import Sequence
from dataclasses import replace

from pinchpoint.capacity import judge_scaling
from pinchpoint.diagnosis import Course, Interval, Thresholds, diagnose, signals_of
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Diagnosis, Evidence, Settled
from pinchpoint.outputs.published import Published, Rendered
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    GpuReading,
    GpuState,
    Histogram,
    HostReading,
    Placement,
    ProbeOutcome,
    ProbeReading,
    Reason,
    ReplicaReading,
    SelfReport,
    Snapshot,
    Window,
    compared,
)

SPAN = 300
BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
GIB = 2.0**30
HOSTILE = "<script>alert('x')</script>\"&\u202egnp.exe"


def histogram(observations: float, around: float) -> Histogram:
    """``observations`` spread evenly over the buckets up to twice ``around``."""
    reach = [b for b in BOUNDS if b <= 2 * around] or [BOUNDS[0]]
    counts = tuple(observations * min(1.0, sum(b <= bound for b in reach) / len(reach)) for bound in BOUNDS)
    return Histogram(BOUNDS, counts, observations * around, observations)


def engine(
    name: str,
    at: float,
    *,
    kv: float | None = 0.4,
    running: float = 12,
    waiting: float = 0,
    tokens_per_second: float = 900.0,
    ttft: float = 0.3,
    tpot: float = 0.02,
    gpus: tuple[str, ...] = ("0",),
    model: str = "meta-llama/Llama-3.1-70B-Instruct",
    replicas: int = 1,
    warnings: tuple[str, ...] = (),
) -> EngineReading:
    return EngineReading(
        engine=name,
        at=at,
        facts=EngineFacts(model=model, version="0.11.0"),
        gpus=gpus,
        warnings=warnings,
        replicas=tuple(
            ReplicaReading(
                replica=str(number),
                model=model,
                requests_running=running / replicas,
                requests_waiting=waiting / replicas,
                kv_cache_usage_ratio=None if kv is None else max(0.0, kv - 0.2 * number),
                kv_cache_capacity_tokens=412_000,
                prompt_tokens_total=at * tokens_per_second * 3,
                generation_tokens_total=at * tokens_per_second,
                ttft_seconds=histogram(at * 4, ttft),
                inter_token_seconds=histogram(at * tokens_per_second, tpot),
            )
            for number in range(replicas)
        ),
    )


def gpu(index: int, at: float, *, busy: float = 0.72, watts: float = 520.0, **changes: object) -> GpuReading:
    values: dict[str, object] = {
        "gpu": str(index),
        "uuid": f"GPU-{index:08d}",
        "at": at,
        "name": "NVIDIA H100 80GB HBM3",
        "utilization_ratio": busy,
        "memory_total_bytes": 80 * GIB,
        "memory_used_bytes": 71.4 * GIB,
        "power_watts": watts,
        "power_limit_watts": 700.0,
        "temperature_celsius": {"gpu": 58.0 + index},
    }
    return GpuReading(**{**values, **changes})  # type: ignore[arg-type]


def lost_gpu(index: int, at: float) -> GpuReading:
    return GpuReading(
        gpu=str(index),
        uuid=f"GPU-{index:08d}",
        at=at,
        up=False,
        state=GpuState.LOST,
        detail="fell off the bus (Xid 79); drain the node and power-cycle it",
    )


def settled(name: str, at: float, bottleneck: Bottleneck, why: str, *, since: float = 200.0, **more: object) -> Settled:
    diagnosis = Diagnosis(engine=name, at=at, bottleneck=bottleneck, why=why, confidence_ratio=0.86, **more)  # type: ignore[arg-type]
    return Settled(diagnosis=diagnosis, since=at - since)


def _measured(verdict: Settled, window: Window) -> Settled:
    """The verdict with the latencies that are really in the window."""
    at, name = window.snapshots[-1].at, verdict.diagnosis.engine
    signals = signals_of(window, name, at, Thresholds())
    told = {"ttft": signals.ttft, "inter_token": signals.inter_token, "signals": signals.numbers()}
    return replace(verdict, diagnosis=replace(verdict.diagnosis, **told))


def scene(snapshots: Sequence[Snapshot], verdicts: Sequence[Settled] = (), now: float = 0.0, **report: object) -> Scene:
    """The newest snapshot seen at Unix time ``now``."""
    window = Window(600.0, tuple(snapshots))
    by_engine = {verdict.diagnosis.engine: _measured(verdict, window) for verdict in verdicts}
    return Scene(
        snapshot=snapshots[-1],
        window=window,
        self_report=SelfReport(version="0.1.0", python_version="3.11.7", **report),  # type: ignore[arg-type]
        verdicts=by_engine,
        scaling={name: judge_scaling(verdict.diagnosis) for name, verdict in by_engine.items()},
        courses={name: course(verdict) for name, verdict in by_engine.items()},
        unix_offset_seconds=now - snapshots[-1].at,
    )


def course(verdict: Settled, *before: tuple[float, Bottleneck]) -> Course:
    """Healthy for four minutes, ``before`` so many seconds each, then the class that is shown."""
    at = verdict.since - 240 - sum(seconds for seconds, _ in before)
    intervals = []
    for seconds, bottleneck in ((240.0, Bottleneck.HEALTHY), *before):
        intervals.append(Interval(start=at, end=at + seconds, bottleneck=bottleneck))
        at += seconds
    shown = Interval(start=verdict.since, end=verdict.diagnosis.at, bottleneck=verdict.diagnosis.bottleneck)
    return (*intervals, shown)


KV_FULL = {
    "runner_up": Bottleneck.SCHEDULER,
    "evidence": (
        Evidence(
            signal="kv_cache_usage_ratio",
            text="KV cache at 97 % of its blocks, threshold 90 %",
            value=0.97,
            threshold=0.9,
        ),
        Evidence(signal="requests_waiting", text="31 requests wait, and the queue grows by 4 a minute", value=31),
        Evidence(signal="preemptions_per_second", text="1.8 preemptions a second throw finished work away", value=1.8),
    ),
    "contradicted_by": (
        Evidence(signal="slots_full_share", text="32 of 64 slots are taken in a tenth of the scrapes", value=0.1),
    ),
    "scores": {Bottleneck.KV_CAPACITY: 0.91, Bottleneck.SCHEDULER: 0.42},
    "missing": ("dram_active_ratio", "tensor_active_ratio"),
    "advice": (
        Advice(
            action="fp8_kv_cache",
            text="Store the KV cache in FP8: half the bytes a token.",
            reason="97 % of the KV cache is in use, in 16 bits",
            effect="about twice the tokens fit",
            flag="--kv-cache-dtype fp8",
            risk="Check answers: long contexts lose most.",
        ),
        Advice(action="add_replica", text="Then another replica.", flag="--data-parallel-size 2", risk="1 GPU more."),
    ),
}


def healthy(now: float = 0.0) -> Scene:
    """One engine that has it easy."""
    snapshots = [
        Snapshot(at=at, engines=(engine("chat", at, kv=0.38 + 0.1 * math.sin(at / 30)),), gpus=(gpu(0, at),))
        for at in map(float, range(1, SPAN + 1))
    ]
    why = "All objectives are met and every resource has room."
    return scene(snapshots, [settled("chat", SPAN, Bottleneck.HEALTHY, why)], now)


def fast() -> list[Snapshot]:
    """An engine whose tokens all come within the lowest bucket."""
    return [Snapshot(at=at, engines=(engine("chat", at, tpot=0.005),)) for at in map(float, range(1, SPAN + 1))]


def full_but_calm(now: float = 0.0) -> Scene:
    """A KV cache at 95 %, and nobody waits."""
    snapshots = [Snapshot(at=at, engines=(engine("chat", at, kv=0.95),)) for at in map(float, range(1, SPAN + 1))]
    return scene(snapshots, [settled("chat", SPAN, Bottleneck.HEALTHY, "Tokens come on time.")], now)


def turning(now: float = 0.0) -> Scene:
    """Healthy is still shown, but first tokens have been late for some seconds."""
    snapshots = [Snapshot(at=at, engines=(engine("chat", at, ttft=6.0),)) for at in map(float, range(1, SPAN + 1))]
    return scene(snapshots, [settled("chat", SPAN, Bottleneck.HEALTHY, "Tokens come on time.")], now)


def starting(now: float = 0.0) -> Scene:
    """The first second: an engine that was not tried yet, and a GPU that was not read yet."""
    gone = (
        Absence("engine/chat", Reason.STARTING, "engine chat has not been scraped yet", 0.0),
        Absence("gpu/0", Reason.STARTING, "GPU 0 is being read for the first time", 0.0),
    )
    snapshot = Snapshot(at=1.0, absences=gone)
    diagnosis = diagnose(Window(60.0, (snapshot,)), "chat", 1.0, Thresholds())
    return scene([snapshot], [Settled(diagnosis=diagnosis, since=1.0)], now)


def kv_full(now: float = 0.0, name: str = "chat") -> Scene:
    """One engine whose KV cache filled up three minutes ago."""
    snapshots = []
    for at in map(float, range(1, SPAN + 1)):
        full = min(1.0, at / 120)
        waiting = max(0.0, (at - 120) / 6)
        reading = engine(name, at, kv=0.3 + 0.67 * full, running=20 + 28 * full, waiting=waiting, ttft=6.0, tpot=0.04)
        snapshots.append(Snapshot(at=at, engines=(reading,), gpus=(gpu(0, at, busy=0.99, watts=688.0),)))
    why = "The KV cache is full, so requests wait for blocks while the GPU could do more."
    return scene(snapshots, [settled(name, SPAN, Bottleneck.KV_CAPACITY, why, **KV_FULL)], now)


def throttled(now: float = 0.0) -> Scene:
    """A hot card."""
    snapshots = [
        Snapshot(
            at=at,
            engines=(engine("chat", at, tpot=0.09),),
            gpus=(gpu(0, at, temperature_celsius={"gpu": 91.0}, throttle_active={"hw_thermal_slowdown": 1.0}),),
        )
        for at in map(float, range(1, SPAN + 1))
    ]
    why = "GPU 0 slows itself down because it is too hot."
    return scene(snapshots, [settled("chat", SPAN, Bottleneck.HARDWARE, why)], now)


def no_data(now: float = 0.0) -> Scene:
    """An engine that stopped answering a minute ago, and a driver that never did."""
    gone = (
        Absence(
            source="engine/chat",
            reason=Reason.CONNECT_REFUSED,
            detail="http://10.0.0.5:8000 refuses: start it",
            at=240.0,
        ),
        Absence(
            source="gpu", reason=Reason.NO_LIBRARY, detail="libnvidia-ml.so.1 not found: install the driver", at=1.0
        ),
    )
    snapshots = [Snapshot(at=at, engines=(engine("chat", at),)) for at in map(float, range(1, 241))]
    snapshots += [Snapshot(at=float(at), absences=gone) for at in range(241, SPAN + 1)]
    why = "The engine does not answer: connection refused."
    return scene(snapshots, [settled("chat", SPAN, Bottleneck.NO_DATA, why, since=60)], now)


def empty(now: float = 0.0) -> Scene:
    """A node with nothing on it."""
    return scene([Snapshot(at=1.0)], now=now)


def hostile(now: float = 0.0) -> Scene:
    """Names and details that mean harm."""
    name = HOSTILE + "A" * 10_000
    reading = engine(name, 2.0, model=HOSTILE, warnings=(HOSTILE,))
    gone = Absence(source=f"engine/{HOSTILE}2", reason=Reason.HTTP_STATUS, detail=HOSTILE, at=1.0)
    probe = ProbeReading(
        target=HOSTILE, placement=Placement.HOSTED, at=1.0, outcome=ProbeOutcome.AUTH, detail=HOSTILE, remedy=HOSTILE
    )
    snapshot = Snapshot(
        at=2.0, engines=(reading,), gpus=(gpu(0, 2.0, name=HOSTILE),), absences=(gone,), probes=(probe,)
    )
    evidence = (Evidence(signal="x", text=HOSTILE),)
    advice = (Advice(action="x", text=HOSTILE),)
    verdict = settled(name, 2.0, Bottleneck.UNKNOWN, HOSTILE, evidence=evidence, advice=advice, missing=(HOSTILE,))
    return scene([snapshot], [verdict], now)


def full_node(now: float = 0.0) -> Scene:
    """Eight GPUs, four engines, probes on both sides, something lost and something missing."""
    gone = (
        Absence(
            source="engine/embed",
            reason=Reason.TIMEOUT,
            detail="http://10.0.0.7:8000/metrics gave no answer in 3 s",
            at=258.0,
        ),
        Absence(
            source="gpu/7", reason=Reason.GPU_LOST, detail="fell off the bus (Xid 79); power-cycle the node", at=221.0
        ),
    )
    snapshots = [_full_tick(float(at), gone) for at in range(1, SPAN + 1)]
    slots = "All 64 batch slots are taken while KV cache and GPU have room."
    slots_more = {
        "runner_up": Bottleneck.COMPUTE,
        "evidence": (
            Evidence(signal="requests_running", text="64 of 64 slots taken, 9 requests wait", value=64),
            Evidence(signal="kv_cache_usage_ratio", text="KV cache at 52 %: room for more requests", value=0.52),
        ),
        "advice": (Advice(action="raise_max_num_seqs", text="Raise --max-num-seqs from 64 to 96."),),
    }
    verdicts = [
        settled(
            "chat",
            SPAN,
            Bottleneck.KV_CAPACITY,
            "The KV cache is full, so requests wait for blocks while the GPU could do more.",
            **KV_FULL,
        ),
        settled("code", SPAN, Bottleneck.SCHEDULER, slots, since=74.0, **slots_more),
        settled(
            "summarize", SPAN, Bottleneck.HEALTHY, "All objectives are met and every resource has room.", since=9000.0
        ),
        settled("embed", SPAN, Bottleneck.NO_DATA, "The engine does not answer: timed out.", since=42.0),
    ]
    return scene(snapshots, verdicts, now, simulated=True, gpus_expected=8, gpus_visible=7)


def _full_tick(at: float, gone: tuple[Absence, ...]) -> Snapshot:
    full, wave = min(1.0, at / 150), math.sin(at / 25)
    chat = engine(
        "chat",
        at,
        kv=0.35 + 0.62 * full,
        running=30 + 22 * full,
        waiting=max(0.0, (at - 140) / 5),
        ttft=4.0,
        tpot=0.03,
        gpus=("0", "1"),
        replicas=2,
    )
    code = engine(
        "code",
        at,
        kv=0.5 + 0.03 * wave,
        running=min(64, 40 + at / 4),
        waiting=max(0.0, 9 * wave),
        gpus=("2", "3"),
        model="Qwen/Qwen2.5-Coder-32B-Instruct",
        ttft=1.2,
    )
    calm = engine(
        "summarize", at, kv=0.2 + 0.1 * wave, running=6, gpus=("4",), model="mistralai/Mistral-7B-v0.3", ttft=0.1
    )
    embed = engine("embed", at, gpus=("5",), model="BAAI/bge-m3")
    late = at > gone[0].at
    lost = lost_gpu(7, at) if at > gone[1].at else gpu(7, at, busy=0.0)
    local = ProbeReading(
        target="chat-local",
        placement=Placement.LOCAL,
        at=at - at % 15,
        engine="chat",
        outcome=ProbeOutcome.OK,
        ttft_seconds=3.41,
        ttfc_seconds=3.41,
        tpot_seconds=0.041,
        duration_seconds=4.69,
        phases={"send": 0.0002, "headers": 3.39, "first_token": 0.02, "generation": 1.27},
        completion_tokens=32,
        characters=141,
        connection="reused",
    )
    hosted = ProbeReading(
        target="openai",
        placement=Placement.HOSTED,
        at=at - at % 60,
        outcome=ProbeOutcome.OK,
        ttft_seconds=0.38,
        ttfc_seconds=0.38,
        tpot_seconds=0.012,
        duration_seconds=1.0,
        phases={
            "resolve": 0.03,
            "connect": 0.08,
            "tls": 0.14,
            "send": 0.0003,
            "headers": 0.31,
            "first_token": 0.07,
            "generation": 0.37,
        },
        completion_tokens=32,
        characters=138,
        connection="new",
        reasoning="summary",
    )
    refused = ProbeReading(
        target="backup",
        placement=Placement.HOSTED,
        at=at - at % 60,
        outcome=ProbeOutcome.AUTH,
        duration_seconds=0.21,
        phases={"connect": 0.05, "tls": 0.09, "headers": 0.07},
        remedy="The key was refused: put a valid one into BACKUP_API_KEY.",
        detail="401 invalid_api_key",
    )
    return Snapshot(
        at=at,
        engines=(chat, code, calm) if late else (chat, code, calm, embed),
        gpus=(
            gpu(0, at, busy=0.99, watts=694.0, throttle_active={"sw_power_cap": 1.0}),
            gpu(1, at, busy=0.98, watts=671.0),
            gpu(2, at, busy=0.88),
            gpu(3, at, busy=0.86),
            gpu(4, at, busy=0.31, watts=240.0),
            gpu(5, at, busy=0.0, watts=75.0),
            gpu(6, at, busy=0.0, watts=71.0, memory_used_bytes=0.6 * GIB),
            lost,
        ),
        probes=(local, hosted, refused),
        comparisons=compared(([local] * 5, [replace(hosted, reasoning=None)] * 5, [refused] * 5), at),
        host=HostReading(
            at=at, cpu_utilization_ratio=0.34, cpu_count=64, cpu_pressure_ratio=0.02, engine_cpu_cores=11.5
        ),
        absences=gone if late else (),
    )


def published(shown: Scene) -> Published:
    """A scene with stand-ins for its metrics."""
    return Published(
        scene=shown,
        text=Rendered(b"pinchpoint_up 1\n"),
        openmetrics=Rendered(b"pinchpoint_up 1\n# EOF\n"),
    )
