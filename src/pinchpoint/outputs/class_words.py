"""What each class is called in front of people: on the status page and on the dashboards, in the same words."""

from collections.abc import Mapping

from pinchpoint.diagnosis.verdict import Bottleneck

CLASS_WORDS: Mapping[Bottleneck, str] = {
    Bottleneck.UNKNOWN: "Can't tell",
    Bottleneck.NO_DATA: "No data",
    Bottleneck.IDLE: "Idle",
    Bottleneck.HEALTHY: "Healthy",
    Bottleneck.KV_CAPACITY: "Out of KV cache",
    Bottleneck.COMPUTE: "Compute at its limit",
    Bottleneck.MEMORY_BANDWIDTH: "Memory bandwidth at its limit",
    Bottleneck.SCHEDULER: "Batch limit reached",
    Bottleneck.HOST_CPU: "Host CPU holds the GPU up",
    Bottleneck.INTERCONNECT: "GPU interconnect too slow",
    Bottleneck.NETWORK: "Slow between client and engine",
    Bottleneck.HARDWARE: "GPU hardware trouble",
    Bottleneck.IMBALANCE: "Replicas loaded unevenly",
    Bottleneck.MEMORY_GROWTH: "GPU memory creeps up",
    Bottleneck.STALLED: "Stalled",
    Bottleneck.SLEEPING: "Asleep",
}
