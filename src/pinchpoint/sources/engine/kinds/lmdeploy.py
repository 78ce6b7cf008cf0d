"""LMDeploy's vocabulary: close to vLLM's names, under a prefix of its own.

Source: lmdeploy/metrics/loggers.py (2026). It counts tokens that the prefix cache served, not those it was asked for,
and prints no size of its KV cache.
"""

from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Table
from pinchpoint.sources.engine.vocabulary import VLLM_LAYOUT, Kind, Term

TABLE = Table(
    layout=VLLM_LAYOUT,
    prefix="lmdeploy:",
    terms={
        "requests_running": Term(Kind.GAUGE, ("lmdeploy:num_requests_running",)),
        "requests_waiting": Term(Kind.GAUGE, ("lmdeploy:num_requests_waiting",)),
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("lmdeploy:gpu_cache_usage_perc",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("lmdeploy:prompt_tokens",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("lmdeploy:generation_tokens",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("lmdeploy:cached_tokens",)),
        "request_success_total": Term(Kind.COUNTER, ("lmdeploy:request_success",), by="finished_reason"),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:time_to_first_token_seconds",)),
        "inter_token_seconds": Term(
            Kind.HISTOGRAM, ("lmdeploy:iter_token_latency", "lmdeploy:time_per_output_token_seconds")
        ),
        "queue_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:request_queue_time_seconds",)),
        "prefill_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:request_prefill_time_seconds",)),
        "decode_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:request_decode_time_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:e2e_request_latency_seconds",)),
        "iteration_tokens": Term(Kind.HISTOGRAM, ("lmdeploy:iteration_tokens_total",)),
    },
)

KIND = EngineKind(
    name="lmdeploy",
    title="LMDeploy",
    marks=("lmdeploy:",),
    says=TABLE.says,
    read=TABLE.read,
    remedy="start lmdeploy serve api_server with --enable-metrics",
)
