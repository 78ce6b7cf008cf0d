"""LMDeploy's vocabulary: close to vLLM's names, under a prefix of its own.

Source: lmdeploy/metrics/loggers.py (2026). Requests wait in two places: in the API server for a rank to
take them, and in the engine. It prints no size of its KV cache, and counts no preemption.
"""

from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Derived, Table
from pinchpoint.sources.engine.vocabulary import VLLM_LAYOUT, Kind, Term, Warn, read_term

_WAITING = ("lmdeploy:num_requests_waiting", "lmdeploy:num_api_requests_waiting")


def _waiting(families: Families, warn: Warn) -> Derived:
    told: dict[str, float] = {}
    for name in _WAITING:
        for replica, value in read_term(Term(Kind.GAUGE, (name,)), families, warn).items():
            if isinstance(value, float):
                told[replica] = told.get(replica, 0.0) + value
    return {replica: {"requests_waiting": value} for replica, value in told.items()}


TABLE = Table(
    layout=VLLM_LAYOUT,
    derived=_waiting,
    derives=frozenset({"requests_waiting"}),
    prefix="lmdeploy:",
    terms={
        "requests_running": Term(Kind.GAUGE, ("lmdeploy:num_requests_running",)),
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("lmdeploy:gpu_cache_usage_perc",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("lmdeploy:prompt_tokens",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("lmdeploy:generation_tokens",)),
        "prefix_cache_queries_total": Term(Kind.COUNTER, ("lmdeploy:prompt_tokens",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("lmdeploy:cached_tokens",)),
        "request_success_total": Term(Kind.COUNTER, ("lmdeploy:request_success",), by="finished_reason"),
        "speculative_drafts_total": Term(Kind.COUNTER, ("lmdeploy:spec_decode_num_drafts",)),
        "speculative_draft_tokens_total": Term(Kind.COUNTER, ("lmdeploy:spec_decode_num_draft_tokens",)),
        "speculative_accepted_tokens_total": Term(Kind.COUNTER, ("lmdeploy:spec_decode_num_accepted_tokens",)),
        "speculative_accepted_tokens_by_position_total": Term(
            Kind.COUNTER, ("lmdeploy:spec_decode_num_accepted_tokens_per_pos",), by="position"
        ),
        "request_prompt_tokens": Term(Kind.HISTOGRAM, ("lmdeploy:request_prompt_tokens",)),
        "request_generation_tokens": Term(Kind.HISTOGRAM, ("lmdeploy:request_generation_tokens",)),
        "inference_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:request_inference_time_seconds",)),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:time_to_first_token_seconds",)),
        "inter_token_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:iter_token_latency",)),
        "tpot_seconds": Term(Kind.HISTOGRAM, ("lmdeploy:time_per_output_token_seconds",)),
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
