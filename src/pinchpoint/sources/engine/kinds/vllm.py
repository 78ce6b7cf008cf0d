"""vLLM's vocabulary: every name a field has had since 0.3.3, in the order in which to believe them.

Source: vllm/engine/metrics.py (V0) and vllm/v1/metrics/loggers.py (V1) of the releases 0.3.3 to 0.33. Replicas are kept
apart here; adding them up is the diagnosis' business.
"""

import re
from collections.abc import Mapping
from typing import Any

from pinchpoint.snapshot import EngineFacts, ReplicaReading
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.vocabulary import Kind, Term, Value, read_term, replica_of

MAX_REPLICAS = 1024
MAX_WARNINGS = 16

VOCABULARY: Mapping[str, Term] = {
    "requests_running": Term(Kind.GAUGE, ("vllm:num_requests_running",)),
    "requests_waiting": Term(Kind.GAUGE, ("vllm:num_requests_waiting",)),
    "requests_waiting_by_reason": Term(Kind.GAUGE, ("vllm:num_requests_waiting_by_reason",), by="reason"),
    "kv_cache_usage_ratio": Term(Kind.RATIO, ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")),
    "preemptions_total": Term(Kind.COUNTER, ("vllm:num_preemptions",)),
    "prompt_tokens_total": Term(Kind.COUNTER, ("vllm:prompt_tokens",)),
    "prompt_tokens_computed_total": Term(
        Kind.COUNTER, ("vllm:prompt_tokens_by_source",), where=("source", "local_compute")
    ),
    "generation_tokens_total": Term(Kind.COUNTER, ("vllm:generation_tokens",)),
    # Blocks up to 0.8.5, tokens since: the ratio of the two is right either way.
    "prefix_cache_queries_total": Term(Kind.COUNTER, ("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries")),
    "prefix_cache_hits_total": Term(Kind.COUNTER, ("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits")),
    "request_success_total": Term(Kind.COUNTER, ("vllm:request_success",), by="finished_reason"),
    "ttft_seconds": Term(Kind.HISTOGRAM, ("vllm:time_to_first_token_seconds",)),
    "inter_token_seconds": Term(
        Kind.HISTOGRAM, ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
    ),
    "queue_seconds": Term(Kind.HISTOGRAM, ("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests")),
    "prefill_seconds": Term(Kind.HISTOGRAM, ("vllm:request_prefill_time_seconds",)),
    "decode_seconds": Term(Kind.HISTOGRAM, ("vllm:request_decode_time_seconds",)),
    "e2e_seconds": Term(Kind.HISTOGRAM, ("vllm:e2e_request_latency_seconds",)),
    # A histogram in spite of its name.
    "iteration_tokens": Term(Kind.HISTOGRAM, ("vllm:iteration_tokens_total",)),
}
_AWAKE = Term(Kind.GAUGE, ("vllm:engine_sleep_state",), where=("sleep_state", "awake"))
_CACHE_CONFIG = "vllm:cache_config_info"


def read_replicas(families: Families) -> tuple[tuple[ReplicaReading, ...], tuple[str, ...]]:
    """Every replica of a (folded) vLLM exposition, and warnings on what was dropped.

    A server that has only declared its metrics has one replica of which nothing is known. No I/O, raises nothing.
    """
    warnings: dict[str, None] = {}
    fields: dict[str, dict[str, Value]] = {}
    for name, term in VOCABULARY.items():
        for replica, value in read_term(term, families, warnings.setdefault).items():
            fields.setdefault(replica, {})[name] = value
    awake = read_term(_AWAKE, families, warnings.setdefault)
    models = _models(families)
    if len(fields) > MAX_REPLICAS:
        warnings[f"{len(fields)} replicas, only {MAX_REPLICAS} are read"] = None
    replicas = tuple(
        _replica(
            name, models.get(name), awake.get(name), kv_capacity_tokens(cache_config(families, name)), fields[name]
        )
        for name in sorted(fields, key=_natural)[:MAX_REPLICAS]
    )
    return replicas or (ReplicaReading(),), tuple(warnings)[:MAX_WARNINGS]


def _replica(
    name: str, model: str | None, awake: Value | None, capacity: float | None, fields: dict[str, Any]
) -> ReplicaReading:
    return ReplicaReading(
        replica=name,
        model=model,
        awake=None if awake is None else awake != 0,
        kv_cache_capacity_tokens=capacity,
        **fields,
    )


def cache_config(families: Families, replica: str | None = None) -> Mapping[str, str]:
    """The labels of ``cache_config_info``: vLLM's CacheConfig as text. Empty where the engine does not print it.

    Of ``replica``, or of any when that is ``None``. A line without an engine label (before 0.9) speaks for all.
    """
    for sample in families.samples.get(_CACHE_CONFIG, ()):
        if replica is None or _speaks_for(sample, replica):
            return sample.labels
    return {}


def _speaks_for(sample: Sample, replica: str) -> bool:
    return replica_of(sample.labels) == replica or not sample.labels.keys() & {"engine", "ReplicaId"}


def kv_capacity_tokens(config: Mapping[str, str]) -> float | None:
    """The KV cache's size in tokens, or ``None`` where the engine does not say it.

    ``kv_cache_size_tokens`` (0.25 and up) knows every cache group. Blocks times block size is right only without
    Mamba layers, whose block size it is not, and a pool without blocks (a pooling model) has no capacity to fill.
    """
    tokens = _integer(config.get("kv_cache_size_tokens"))
    if tokens is None and config.get("mamba_block_size", "None") == "None":
        blocks, block_size = _integer(config.get("num_gpu_blocks")), _integer(config.get("block_size"))
        tokens = blocks * block_size if blocks is not None and block_size is not None else None
    return float(tokens) if tokens else None


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text) else None


def _models(families: Families) -> dict[str, str]:
    models: dict[str, str] = {}
    for name, samples in families.samples.items():
        for sample in samples if name.startswith("vllm:") else ():
            model = sample.labels.get("model_name") or sample.labels.get("model")  # Triton's backend says "model"
            if model:
                models.setdefault(replica_of(sample.labels), model)
    return models


def _natural(replica: str) -> tuple[int, str]:
    """Sort key that puts rank 2 before rank 10."""
    return (len(replica) if replica.isdecimal() else 1_000, replica)


def _facts(families: Families) -> EngineFacts:
    config = cache_config(families)
    return EngineFacts(
        enable_prefix_caching={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
        gpu_memory_utilization=_ratio(config.get("gpu_memory_utilization")),
    )


def _ratio(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


KIND = EngineKind(
    name="vllm",
    title="vLLM",
    marks=("vllm:",),
    says=frozenset(VOCABULARY) | {"awake", "kv_cache_capacity_tokens"},
    read=read_replicas,
    facts=_facts,
    remedy="start vLLM without --disable-log-stats; check port and metrics_path",
)
