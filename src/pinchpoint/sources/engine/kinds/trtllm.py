"""TensorRT-LLM's ``trtllm-serve`` (tensorrt_llm/metrics/collector.py): at /prometheus/metrics, for /metrics is JSON.

Until early 2026 its five families bore no prefix. Tokens are counted when a request ends. ``kv_cache_hit_rate`` is over
the lifetime, warm-up included, and not read: the counters of blocks are. Its histograms leave out zeros.
"""

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Layout, Term, Value, Warn, read_term

_OLD = (
    "request_success",
    "e2e_request_latency_seconds",
    "time_to_first_token_seconds",
    "time_per_output_token_seconds",
    "request_queue_time_seconds",
)
_LAYOUT = Layout(lambda _labels: "0", copies=frozenset({"pid"}))
_REUSED = Term(Kind.COUNTER, ("trtllm_kv_cache_reused_blocks",))
_MISSED = Term(Kind.COUNTER, ("trtllm_kv_cache_missed_blocks",))


def prefixed(name: str) -> str:
    """A family of old that had no prefix, under its name of today."""
    return f"trtllm_{name}" if name.startswith(_OLD) else name


def is_old(names: frozenset[str]) -> bool:
    """Whether these are the names without a prefix: all of them, so that a stranger's one is not taken for them."""
    return all(any(name.startswith(old) for name in names) for old in _OLD[1:])


def _gauge(families: Families, name: str) -> float | None:
    return gauges(families, _LAYOUT, f"trtllm_{name}").get("0") or None


def _blocks(families: Families, warn: Warn) -> Derived:
    most, size = _gauge(families, "kv_cache_max_blocks"), _gauge(families, "kv_cache_tokens_per_block")
    if size is None:
        return {}
    found: dict[str, Value] = {"kv_cache_capacity_tokens": most * size} if most else {}
    reused, missed = (read_term(term, families, warn, _LAYOUT).get("0") for term in (_REUSED, _MISSED))
    if isinstance(reused, float) and isinstance(missed, float):
        found |= {"prefix_cache_hits_total": reused * size, "prefix_cache_queries_total": (reused + missed) * size}
    return {"0": found}


TABLE = Table(
    layout=_LAYOUT,
    prefix="trtllm_",
    derived=_blocks,
    derives=frozenset({"kv_cache_capacity_tokens", "prefix_cache_hits_total", "prefix_cache_queries_total"}),
    terms={
        "requests_running": Term(Kind.GAUGE, ("trtllm_num_requests_running",)),
        "requests_waiting": Term(Kind.GAUGE, ("trtllm_num_requests_waiting",)),
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("trtllm_kv_cache_utilization",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("trtllm_prompt_tokens",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("trtllm_generation_tokens",)),
        "request_success_total": Term(Kind.COUNTER, ("trtllm_request_success",), by="finished_reason"),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("trtllm_time_to_first_token_seconds",)),
        "tpot_seconds": Term(Kind.HISTOGRAM, ("trtllm_time_per_output_token_seconds",)),
        "queue_seconds": Term(Kind.HISTOGRAM, ("trtllm_request_queue_time_seconds",)),
        "prefill_seconds": Term(Kind.HISTOGRAM, ("trtllm_request_prefill_time_seconds",)),
        "decode_seconds": Term(Kind.HISTOGRAM, ("trtllm_request_decode_time_seconds",)),
        "inference_seconds": Term(Kind.HISTOGRAM, ("trtllm_request_inference_time_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("trtllm_e2e_request_latency_seconds",)),
        "speculative_draft_tokens_total": Term(Kind.COUNTER, ("trtllm_spec_decode_num_draft_tokens",)),
        "speculative_accepted_tokens_total": Term(Kind.COUNTER, ("trtllm_spec_decode_num_accepted_tokens",)),
    },
)


def _facts(families: Families) -> EngineFacts:
    seats = _gauge(families, "max_num_active_requests") or _gauge(families, "max_batch_size_static")
    budget, block = _gauge(families, "max_num_tokens_runtime"), _gauge(families, "kv_cache_tokens_per_block")
    return EngineFacts(
        max_num_seqs=int(seats) if seats else None,
        max_num_batched_tokens=int(budget) if budget else None,
        block_size=int(block) if block else None,
    )


KIND = EngineKind(
    name="trtllm",
    title="TensorRT-LLM",
    marks=("trtllm_",),
    says=TABLE.says,
    read=TABLE.read,
    facts=_facts,
    paths=("/prometheus/metrics", "/metrics"),
    tokens_at_end=True,
    remedy="set return_perf_metrics and enable_iter_perf_stats in trtllm-serve's configuration",
)
