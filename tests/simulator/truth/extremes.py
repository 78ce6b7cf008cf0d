"""Worlds that leave no doubt: one healthy service, and one change each that everybody would name."""

from dataclasses import replace

from pinchpoint.physics import GPUS, LLAMA_3_1_8B, QWEN_2_5_14B
from pinchpoint.simulator import EngineSpec, Lengths, Workload
from pinchpoint.simulator.world import Gateway, Host, Leak, Probes, Routing, Stall, Throttle, World
from pinchpoint.snapshot import Slo

SPEC = EngineSpec(
    name="chat",
    model="meta-llama/Llama-3.1-8B-Instruct",
    model_config=LLAMA_3_1_8B,
    gpu=GPUS["NVIDIA H100 80GB HBM3"],
    gpus=("0",),
)
CHAT = Workload(arrivals_per_second=4.0, prompt=Lengths(median=400), output=Lengths(median=150, high=600))
HEALTHY = World(
    seed=1, engine=SPEC, workload=CHAT, slo=Slo(ttft_seconds=1.0, tpot_seconds=0.05), probes=Probes(every_seconds=10.0)
)
PAIR = replace(HEALTHY, replicas=2)
L40S_PAIR = replace(SPEC, gpu=GPUS["NVIDIA L40S"], gpus=("0", "1"), link="SYS", model_config=QWEN_2_5_14B)
DOCUMENTS = Workload(
    arrivals_per_second=6.0, prompt=Lengths(median=5000, sigma=0.2, high=7000), output=Lengths(median=8)
)


def _busy(rate: float, **engine: object) -> World:
    return replace(
        HEALTHY,
        engine=replace(SPEC, **engine),  # type: ignore[arg-type]
        workload=replace(CHAT, arrivals_per_second=rate),
    )


EXTREMES = {
    "kv_capacity": _busy(40.0, num_gpu_blocks_override=520),
    "scheduler": _busy(14.0, max_num_seqs=8),
    "compute": replace(HEALTHY, workload=replace(DOCUMENTS, arrivals_per_second=9.0)),
    "memory_bandwidth": replace(HEALTHY, slo=Slo(ttft_seconds=2.0, tpot_seconds=0.006)),
    "host_cpu": replace(HEALTHY, host=Host(step_seconds=0.08)),
    "interconnect": replace(
        HEALTHY,
        engine=L40S_PAIR,
        workload=replace(DOCUMENTS, arrivals_per_second=0.9),
    ),
    "network": replace(HEALTHY, gateway=Gateway(delay_seconds=3.0)),
    "hardware": replace(
        HEALTHY, workload=replace(CHAT, arrivals_per_second=10.0), faults=(Throttle(gpu="0", clock_ratio=0.1),)
    ),
    "imbalance": replace(
        PAIR, workload=replace(CHAT, arrivals_per_second=70.0), routing=Routing(policy="weighted", weights=(30.0, 1.0))
    ),
    "stalled": replace(HEALTHY, faults=(Stall(replica=0, at=12.0),)),
    "memory_growth": replace(HEALTHY, faults=(Leak(gpu="0", bytes_per_second=5e6),)),
    "idle": replace(HEALTHY, workload=Workload()),
    "sleeping": replace(HEALTHY, asleep=True),
    "healthy": HEALTHY,
}
