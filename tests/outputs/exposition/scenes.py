"""One scene in which every row of the metric table has something to say."""

from dataclasses import fields, replace

from pinchpoint.capacity import Scaling
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Diagnosis, Settled
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import (
    Absence,
    AlertingReport,
    AlertmanagerReport,
    AlertReport,
    DiscoveryReport,
    EngineFacts,
    EngineReading,
    FrontendReading,
    GpuPod,
    GpuProcess,
    GpuReading,
    GpuState,
    Histogram,
    HostReading,
    JobReport,
    MigInstance,
    NvLink,
    NvmlCall,
    NvmlCalls,
    PeerLink,
    Placement,
    ProbeOutcome,
    ProbeReading,
    ProbeSpend,
    ProbeTotals,
    Reason,
    ReplicaReading,
    SelfReport,
    Snapshot,
    SourceReport,
    StuckCall,
    Window,
    XidCount,
    compared,
)

INF = float("inf")
HISTOGRAM = Histogram((0.1, 1.0, INF), (3, 5, 6), 4.5, 6)


def filled(cls, **given):
    """An instance of a reading whose every field is known: numbers 0.5, histograms, one-key mappings."""
    made = dict(given)
    for field in fields(cls):
        kind = str(field.type)
        if field.name in made:
            continue
        if "Histogram" in kind:
            made[field.name] = HISTOGRAM
        elif "Mapping[str, float]" in kind:
            made[field.name] = {"one": 1.0}
        elif "tuple[float" in kind:
            made[field.name] = (0.5,)
        elif "float" in kind:
            made[field.name] = 0.5
        elif "bool" in kind and field.default is None:
            made[field.name] = True
    return cls(**made)


XID = XidCount(xid="79", source="nvml", total=1.0, last_at=50.0)


def gpu(index: int = 0, **given) -> GpuReading:
    parts = {
        "recovery_action": "none",
        "xids": (XID,),
        "nvlinks": (filled(NvLink, link="0", up=True),),
        "mig_instances": (filled(MigInstance, uuid="MIG-1", gpu_instance="1", compute_instance="0"),),
        "processes": (filled(GpuProcess, pid=4242, kind="compute", command="vllm"),),
    }
    return filled(GpuReading, **{"gpu": str(index), "uuid": f"GPU-{index}", "at": 100.0, **parts, **given})


def lost_gpu(index: int) -> GpuReading:
    uuid = f"GPU-{index}"
    return GpuReading(gpu=str(index), uuid=uuid, at=100.0, up=False, state=GpuState.LOST, xids=(XID,))


def engine(name: str = "chat", replicas: int = 1, **given) -> EngineReading:
    every = tuple(
        filled(
            ReplicaReading,
            replica=str(n),
            model="llama",
            awake=True,
            sleep_level=0.0,
            kv_cache_capacity_tokens=4096,
            prompt_tokens_by_source_total={"local_compute": 0.5},
        )
        for n in range(replicas)
    )
    facts = EngineFacts(version="0.11.0", model="llama", max_num_seqs=64, origins={"max_num_seqs": "config"})
    frontend = filled(
        FrontendReading,
        lora_adapters_max=4.0,
        lora_adapters={"running": 2.0, "waiting": 1.0},
        lora_running=("a", "b"),
        lora_waiting=("b",),
    )
    made = {"engine": name, "at": 100.0, "replicas": every, "facts": facts, "frontend": frontend, "gpus": ("0",)}
    return EngineReading(**{**made, **given})


def settled(name: str = "chat", bottleneck: Bottleneck = Bottleneck.KV_CAPACITY) -> Settled:
    diagnosis = Diagnosis(
        engine=name,
        at=100.0,
        bottleneck=bottleneck,
        why="because",
        confidence_ratio=0.9,
        scores={bottleneck: 0.9},
        advice=(Advice(action="fp8_kv_cache", text="halve it"),),
        signals={"kv_cache_usage_ratio": 0.97, "inferred_max_num_seqs": 48.0},
    )
    return Settled(diagnosis=diagnosis, since=40.0)


def probes() -> tuple[ProbeReading, ...]:
    ours = filled(ProbeReading, target="chat", placement=Placement.LOCAL, at=99.0, outcome=ProbeOutcome.OK)
    ours = replace(ours, completion_tokens=32, characters=128, connection="new", reasoning="streamed")
    theirs = replace(ours, target="hosted", placement=Placement.HOSTED, ttft_seconds=0.25)
    return ours, theirs


def alerting() -> AlertingReport:
    full = AlertReport(
        alert="PinchpointKVCacheHigh",
        severity="critical",
        state="firing",
        labels={"engine": "chat", "replica": "0", "instance": "node:10770"},
        value=0.95,
        since_unix_seconds=1e9,
        summary="The KV cache is nearly full.",
        description="Engine chat has held 95 % of its KV-cache blocks for 5 minutes.",
    )
    lost = replace(full, alert="PinchpointGPULost", state="pending", labels={"gpu": "2", "uuid": "GPU-2"})
    watchdog = replace(full, alert="PinchpointWatchdog", severity="none", labels={})
    member = AlertmanagerReport(
        alertmanager="http://alertmanager:9093",
        up=False,
        notifications_total=7,
        notifications_failed_total={Reason.TIMEOUT: 2},
        last_success_timestamp_seconds=1e9,
        queue_length=3,
    )
    return AlertingReport(
        active=(full, lost, watchdog),
        alertmanagers=(member,),
        evaluation_seconds=0.01,
        evaluation_failures_total=1,
        last_evaluation_timestamp_seconds=1e9,
        refused=0,
    )


def full_scene(gpus: int = 2, engines: int = 1, replicas: int = 1) -> Scene:
    names = [f"chat{n or ''}" for n in range(engines)]
    totals = tuple(ProbeTotals(target=p.target, placement=p.placement).after(p) for p in probes())
    totals = tuple(replace(t, tokens_total={"prompt": 9}, phase_seconds={"connect": HISTOGRAM}) for t in totals)
    spend = ProbeSpend(tokens_total=90, usd_total=0.01, remaining_tokens={"day": 5}, remaining_usd={"month": 1.5})
    totals = (totals[0], replace(totals[1], spend=spend, endpoint_up=True))
    totals = (totals[0], replace(totals[1], consecutive_failures=3, last_failure=ProbeOutcome.DNS))
    snapshot = Snapshot(
        at=100.0,
        gpus=(*(gpu(n) for n in range(gpus)), lost_gpu(gpus)),
        engines=tuple(engine(name, replicas) for name in names),
        probes=probes(),
        probe_totals=totals,
        comparisons=compared(([probe] for probe in probes()), 100.0, at_least=1),
        host=filled(HostReading, at=100.0),
        links=(PeerLink("0", "1", "NV18", "ok"),),
        pods=(GpuPod(uuid="GPU-0", namespace="llm", pod="chat-0", container="vllm"),),
        absences=(Absence("engine/gone", Reason.CONNECT_REFUSED, "nobody listens", 90.0),),
    )
    report = SelfReport(
        version="0.1.0",
        python_version="3.11.7",
        event_loop_lag_seconds=0.001,
        render_seconds=0.002,
        config_last_reload_success_timestamp_seconds=1e9,
        sources=(SourceReport(source="gpu", up=True, duration_seconds=0.1, last_success_timestamp_seconds=1e9),),
        jobs=(JobReport(job="tick", runs_total=5, last_duration_seconds=0.01),),
        discoveries=(
            DiscoveryReport(discovery="file/fleet", targets=3, refused=1, failures_total={Reason.UNREADABLE: 2}),
        ),
        shard=0,
        shards=4,
        gpus_expected=3,
        gpus_visible=2,
        alerting=alerting(),
        nvml=NvmlCalls(
            calls=(NvmlCall(call="nvmlDeviceGetPowerUsage", calls_total=7, seconds_total=0.01),),
            field_seconds_total={"82": 0.001},
            stuck=(StuckCall(gpu="2", call="nvmlDeviceGetPowerUsage", seconds=30.0),),
        ),
    )
    return Scene(
        snapshot=snapshot,
        window=Window(300.0, (snapshot,)),
        self_report=report,
        verdicts={name: settled(name) for name in names},
        scaling={name: Scaling(more_gpus_help=True, reason="it would") for name in names},
        class_seconds={(name, Bottleneck.KV_CAPACITY): 60.0 for name in names},
        unix_offset_seconds=1e9,
    )


def empty_scene() -> Scene:
    report = SelfReport(version="0.1.0", python_version="3.11.7")
    return Scene(snapshot=Snapshot(at=0.0), window=Window(300.0), self_report=report)
