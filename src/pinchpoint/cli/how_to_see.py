"""How to provide a signal that a diagnosis missed, in one line each."""

from collections.abc import Mapping

_NODE = "run pinchpoint on the engine's node, where NVML is (a recording: gpu.jsonl)"
_GPM = "needs the profiling counters of Hopper and later cards, outside MIG"
_METRICS = (
    "the engine's /metrics has it not: newer versions do; vLLM without --disable-log-stats, SGLang --enable-metrics"
)
_FACT = (
    "set it for the engine (engines.targets[], local_engine), or run pinchpoint on its host: it reads the command line"
)
_MODEL = "needs the model's shape and the card: set model_config and gpu_name for the engine (a recording: meta.json)"
_HOST = "run pinchpoint on the engine's host (a recording: host.jsonl)"
_LINKS = "run pinchpoint on the engine's node; nvidia-smi topo -m shows the same (a recording: links in meta.json)"
_PROBE = "configure a probe that leads to the engine as clients reach it (probes.targets)"

_BY_NAME: Mapping[str, str] = {
    "gpu_readings": _NODE,
    "gpu_tensor_active_ratio": _GPM,
    "gpu_dram_active_ratio": _GPM,
    "gpu_sm_active_ratio": _GPM,
    "max_num_seqs": _FACT,
    "max_num_batched_tokens": _FACT,
    "tensor_parallel_size": _FACT,
    "model_flops_utilization_ratio": _MODEL,
    "model_config": _MODEL,
    "gpu_name": _MODEL,
    "engine_scrape": "see that /metrics answers from here, and which URL and token pinchpoint has for it",
    "own_probes": _PROBE,
}
_BY_BEGINNING: Mapping[str, str] = {
    "gpu": _NODE,
    "roofline": _MODEL,
    "memory_bandwidth": _MODEL,
    "memory_growth": _NODE,
    "memory_full": _NODE,
    "host_": _HOST,
    "link": _LINKS,
    "communication": _LINKS,
    "pcie": _NODE,
    "probe": _PROBE,
    "network": _PROBE,
    "client": _PROBE,
}


def how_to_see(signal: str) -> str:
    """What to do that the next diagnosis has ``signal``."""
    if signal in _BY_NAME:
        return _BY_NAME[signal]
    return next((how for beginning, how in _BY_BEGINNING.items() if signal.startswith(beginning)), _METRICS)
