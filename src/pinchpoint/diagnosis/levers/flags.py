"""Command-line flags by kind of engine: vLLM's ``vllm serve --help``, SGLang's "Server Arguments".

A kind that is not here has no flag offered; one that is not known is taken for vLLM.
"""

from collections.abc import Mapping

_VLLM = {
    "max_num_seqs": "--max-num-seqs",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "max_model_len": "--max-model-len",
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "kv_cache_dtype": "--kv-cache-dtype fp8",
    "fp8": "--quantization fp8",
    "enable_prefix_caching": "--enable-prefix-caching",
    "tensor_parallel_size": "--tensor-parallel-size",
    "pipeline_parallel_size": "--pipeline-parallel-size",
    "data_parallel_size": "--data-parallel-size",
    "api_servers": "--api-server-count",
    "async_scheduling": "--async-scheduling",
    "ngram": """--speculative-config '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}'""",
}
_SGLANG = {
    "max_num_seqs": "--max-running-requests",
    "max_num_batched_tokens": "--chunked-prefill-size",
    "max_model_len": "--context-length",
    "gpu_memory_utilization": "--mem-fraction-static",
    "kv_cache_dtype": "--kv-cache-dtype fp8_e5m2",
    "fp8": "--quantization fp8",
    "tensor_parallel_size": "--tp-size",
    "pipeline_parallel_size": "--pp-size",
    "data_parallel_size": "--dp-size",
    "api_servers": "--tokenizer-worker-num",
    "ngram": "--speculative-algorithm NGRAM",
}
_FLAGS: Mapping[str, Mapping[str, str]] = {"": _VLLM, "vllm": _VLLM, "dynamo": {}, "sglang": _SGLANG}


def flag(kind: str, name: str, value: float | None = None) -> str | None:
    """The flag of this kind of engine, with its value; ``None`` where it has none that we know."""
    found = _FLAGS.get(kind, {}).get(name)
    if found is None or value is None:
        return found
    return f"{found} {value:.10g}"


def flags(kind: str, **values: float) -> str | None:
    """Several flags that belong together; ``None`` where any is not known."""
    found = [flag(kind, name, value) for name, value in values.items()]
    return None if None in found else " ".join(text for text in found if text)
