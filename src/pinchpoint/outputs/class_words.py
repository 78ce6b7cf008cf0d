"""What each class is called and how it is coloured before people: on the status page and the dashboards alike."""

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

# Told apart by eyes that see no red, no green or no blue too, on a light ground and on a dark one. The page's style
# sheet repeats them.
CLASS_COLOURS: Mapping[Bottleneck, str] = {
    Bottleneck.UNKNOWN: "#bfa8ff",
    Bottleneck.NO_DATA: "#4c6a80",
    Bottleneck.IDLE: "#a8b4bd",
    Bottleneck.HEALTHY: "#3fa796",
    Bottleneck.KV_CAPACITY: "#b31000",
    Bottleneck.COMPUTE: "#2f5fb8",
    Bottleneck.MEMORY_BANDWIDTH: "#4c3c89",
    Bottleneck.SCHEDULER: "#fab940",
    Bottleneck.HOST_CPU: "#967334",
    Bottleneck.INTERCONNECT: "#39a0dc",
    Bottleneck.NETWORK: "#d79950",
    Bottleneck.HARDWARE: "#84024a",
    Bottleneck.IMBALANCE: "#d06a16",
    Bottleneck.MEMORY_GROWTH: "#bedc6e",
    Bottleneck.STALLED: "#b5394c",
    Bottleneck.SLEEPING: "#7e93b8",
}
