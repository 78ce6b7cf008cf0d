"""Which option of which engine says which fact: one table per kind.

Sources: vLLM's EngineArgs, SGLang's ServerArgs, the ``--help`` of TGI's launcher and router, of llama-server, of
``lmdeploy serve api_server`` and of trtllm-serve. An option that means nearly the same is not here: TGI's
``--max-concurrent-requests`` counts those that wait too, LMDeploy's ``--cache-max-entry-count`` is of free memory.
Defaults are not here either: they change with version and hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.sources.process.numbers import Read, ratio, whole, word

Said = tuple[str, Read]  # the fact, and how its text is read
Flag = tuple[str, object]  # an option without a value: the fact, and what it is then


@dataclass(frozen=True, slots=True)
class Options:
    """``values`` and ``flags`` by option without its dashes, ``_`` written ``-``. ``port``: where none is given."""

    values: Mapping[str, Said]
    flags: Mapping[str, Flag] = field(default_factory=dict)
    variables: Mapping[str, str] = field(
        default_factory=dict
    )  # of the environment, and the option that each stands for
    config: str = ""  # the option that names a YAML file of options
    port: int = 8000


_VLLM = Options(
    values={
        "served-model-name": ("model", word),
        "max-num-seqs": ("max_num_seqs", whole),
        "max-num-batched-tokens": ("max_num_batched_tokens", whole),
        "max-model-len": ("max_model_len", whole),
        "tensor-parallel-size": ("tensor_parallel_size", whole),
        "tp": ("tensor_parallel_size", whole),
        "pipeline-parallel-size": ("pipeline_parallel_size", whole),
        "pp": ("pipeline_parallel_size", whole),
        "data-parallel-size": ("data_parallel_size", whole),
        "dp": ("data_parallel_size", whole),
        "gpu-memory-utilization": ("gpu_memory_utilization", ratio),
        "block-size": ("block_size", whole),
        "kv-cache-dtype": ("kv_cache_dtype", word),
        "quantization": ("quantization", word),
        "q": ("quantization", word),
    },
    flags={
        "enable-prefix-caching": ("enable_prefix_caching", True),
        "no-enable-prefix-caching": ("enable_prefix_caching", False),
    },
    config="config",
)
_SGLANG = Options(
    values={
        "served-model-name": ("model", word),
        "max-running-requests": ("max_num_seqs", whole),
        "context-length": ("max_model_len", whole),
        "tensor-parallel-size": ("tensor_parallel_size", whole),
        "tp-size": ("tensor_parallel_size", whole),
        "tp": ("tensor_parallel_size", whole),
        "pipeline-parallel-size": ("pipeline_parallel_size", whole),
        "pp-size": ("pipeline_parallel_size", whole),
        "data-parallel-size": ("data_parallel_size", whole),
        "dp-size": ("data_parallel_size", whole),
        "dp": ("data_parallel_size", whole),
        "mem-fraction-static": ("gpu_memory_utilization", ratio),
        "page-size": ("block_size", whole),
        "kv-cache-dtype": ("kv_cache_dtype", word),
        "quantization": ("quantization", word),
        "max-total-tokens": ("kv_cache_capacity_tokens", whole),
    },
    flags={"disable-radix-cache": ("enable_prefix_caching", False)},
    config="config",
    port=30_000,
)
_TGI = Options(
    values={
        "max-batch-size": ("max_num_seqs", whole),
        "max-batch-prefill-tokens": ("max_num_batched_tokens", whole),
        "max-total-tokens": ("max_model_len", whole),
        "max-batch-total-tokens": ("kv_cache_capacity_tokens", whole),
        "num-shard": ("tensor_parallel_size", whole),
        "quantize": ("quantization", word),
        "kv-cache-dtype": ("kv_cache_dtype", word),
        "model-id": ("model", word),
    },
    variables={
        "MAX_BATCH_SIZE": "max-batch-size",
        "MAX_BATCH_PREFILL_TOKENS": "max-batch-prefill-tokens",
        "MAX_TOTAL_TOKENS": "max-total-tokens",
        "MAX_BATCH_TOTAL_TOKENS": "max-batch-total-tokens",
        "NUM_SHARD": "num-shard",
        "QUANTIZE": "quantize",
        "KV_CACHE_DTYPE": "kv-cache-dtype",
        "MODEL_ID": "model-id",
        "PORT": "port",
    },
    port=3000,
)
_LLAMACPP = Options(
    values={
        "parallel": ("max_num_seqs", whole),
        "np": ("max_num_seqs", whole),
        "ctx-size": ("kv_cache_capacity_tokens", whole),  # of all slots together
        "c": ("kv_cache_capacity_tokens", whole),
        "batch-size": ("max_num_batched_tokens", whole),
        "b": ("max_num_batched_tokens", whole),
        "cache-type-k": ("kv_cache_dtype", word),
        "ctk": ("kv_cache_dtype", word),
        "alias": ("model", word),
        "a": ("model", word),
    },
    variables={
        "LLAMA_ARG_N_PARALLEL": "parallel",
        "LLAMA_ARG_CTX_SIZE": "ctx-size",
        "LLAMA_ARG_BATCH": "batch-size",
        "LLAMA_ARG_CACHE_TYPE_K": "cache-type-k",
        "LLAMA_ARG_ALIAS": "alias",
        "LLAMA_ARG_PORT": "port",
    },
    port=8080,
)
_LMDEPLOY = Options(
    values={
        "model-name": ("model", word),
        "max-batch-size": ("max_num_seqs", whole),
        "max-prefill-token-num": ("max_num_batched_tokens", whole),
        "session-len": ("max_model_len", whole),
        "tp": ("tensor_parallel_size", whole),
        "dp": ("data_parallel_size", whole),
        "cache-block-seq-len": ("block_size", whole),
        "model-format": ("quantization", word),
    },
    flags={"enable-prefix-caching": ("enable_prefix_caching", True)},
    port=23_333,
)
_TRTLLM = Options(
    values={
        "max-batch-size": ("max_num_seqs", whole),
        "max-num-tokens": ("max_num_batched_tokens", whole),
        "max-seq-len": ("max_model_len", whole),
        "tp-size": ("tensor_parallel_size", whole),
        "pp-size": ("pipeline_parallel_size", whole),
    },
)
OPTIONS: Mapping[str, Options] = {
    "vllm": _VLLM,
    "sglang": _SGLANG,
    "tgi": _TGI,
    "llamacpp": _LLAMACPP,
    "lmdeploy": _LMDEPLOY,
    "trtllm": _TRTLLM,
    "triton": Options(values={}),  # its port is that of inference, and its models have their own files
}
# The model where it is the first word (`vllm serve MODEL`), or an option of a path: believed least.
MODEL_OPTIONS = ("model", "model-path", "model-tag")
