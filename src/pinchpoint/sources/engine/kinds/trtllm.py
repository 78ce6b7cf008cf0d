"""TensorRT-LLM's ``trtllm-serve`` (2025 and 2026): at /prometheus/metrics, for /metrics is JSON of its iterations.

Tokens are counted when a request ends. ``trtllm_kv_cache_hit_rate`` is over the lifetime, warm-up included, and not
read.
"""

from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import ONE_REPLICA, Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Term, Warn


def _blocks(families: Families, _warn: Warn) -> Derived:
    most = gauges(families, ONE_REPLICA, "trtllm_kv_cache_max_blocks").get("0")
    size = gauges(families, ONE_REPLICA, "trtllm_kv_cache_tokens_per_block").get("0")
    return {"0": {"kv_cache_capacity_tokens": most * size}} if most and size else {}


TABLE = Table(
    prefix="trtllm_",
    derived=_blocks,
    derives=frozenset({"kv_cache_capacity_tokens"}),
    terms={
        "requests_running": Term(Kind.GAUGE, ("trtllm_num_requests_running",)),
        "requests_waiting": Term(Kind.GAUGE, ("trtllm_num_requests_waiting",)),
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("trtllm_kv_cache_utilization",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("trtllm_prompt_tokens",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("trtllm_generation_tokens",)),
        "prefix_cache_queries_total": Term(Kind.COUNTER, ("trtllm_prompt_tokens",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("trtllm_prompt_cached_tokens",)),
        "request_success_total": Term(Kind.COUNTER, ("trtllm_request_success",), by="finished_reason"),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("trtllm_time_to_first_token_seconds",)),
        "inter_token_seconds": Term(Kind.HISTOGRAM, ("trtllm_time_per_output_token_seconds",)),
        "queue_seconds": Term(Kind.HISTOGRAM, ("trtllm_request_queue_time_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("trtllm_e2e_request_latency_seconds",)),
    },
)

KIND = EngineKind(
    name="trtllm",
    title="TensorRT-LLM",
    marks=("trtllm_",),
    says=TABLE.says,
    read=TABLE.read,
    paths=("/prometheus/metrics", "/metrics"),
    remedy="set return_perf_metrics and enable_iter_perf_stats in trtllm-serve's configuration",
)
