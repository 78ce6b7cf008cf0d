"""SGLang's vocabulary: sglang/srt/metrics/collector.py (0.3 to 0.5.23).

A scheduler's gauges are said by every tensor-parallel, pipeline and expert rank that publishes (copies of one value)
and by each data-parallel rank (replicas). Requests are counted before a rank is chosen, once by ``is_streaming``: so
with several ranks these counts are a replica of their own, ``all``.
"""

from collections.abc import Mapping

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Layout, Term, Warn


def _replica_of(labels: Mapping[str, str]) -> str:
    return labels.get("dp_rank", "")


_LAYOUT = Layout(_replica_of, frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"}), split="priority")


def _capacity(families: Families, _warn: Warn) -> Derived:
    told = gauges(families, _LAYOUT, "sglang:max_total_num_tokens")
    pages, size = gauges(families, _LAYOUT, "sglang:num_pages"), gauges(families, _LAYOUT, "sglang:page_size")
    paged = {replica: count * size[replica] for replica, count in pages.items() if replica in size}
    return {replica: {"kv_cache_capacity_tokens": tokens} for replica, tokens in {**paged, **told}.items() if tokens}


TABLE = Table(
    layout=_LAYOUT,
    prefix="sglang:",
    derived=_capacity,
    derives=frozenset({"kv_cache_capacity_tokens"}),
    terms={
        "requests_running": Term(Kind.GAUGE, ("sglang:num_running_reqs", "sglang:num_running_req")),
        "requests_waiting": Term(Kind.GAUGE, ("sglang:num_queue_reqs", "sglang:num_queue_req", "sglang:queue_req")),
        # Live requests only: the radix cache's evictable tokens are free. The fullest of all pools of a hybrid model.
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("sglang:token_usage", "sglang:full_token_usage")),
        "preemptions_total": Term(Kind.COUNTER, ("sglang:num_retracted_requests",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("sglang:prompt_tokens",)),
        "prompt_tokens_computed_total": Term(
            Kind.COUNTER, ("sglang:realtime_tokens",), where=("mode", "prefill_compute")
        ),
        "generation_tokens_total": Term(Kind.COUNTER, ("sglang:generation_tokens",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("sglang:cached_tokens",)),
        # Of every prompt token the radix cache is asked.
        "prefix_cache_queries_total": Term(Kind.COUNTER, ("sglang:prompt_tokens",)),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("sglang:time_to_first_token_seconds",)),
        "inter_token_seconds": Term(
            Kind.HISTOGRAM, ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")
        ),
        "queue_seconds": Term(Kind.HISTOGRAM, ("sglang:queue_time_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("sglang:e2e_request_latency_seconds",)),
    },
)


def _facts(families: Families) -> EngineFacts:
    context = max(gauges(families, _LAYOUT, "sglang:context_len").values(), default=0)
    page = max(gauges(families, _LAYOUT, "sglang:page_size").values(), default=0)
    return EngineFacts(max_model_len=int(context) or None, block_size=int(page) or None)


KIND = EngineKind(
    name="sglang",
    title="SGLang",
    marks=("sglang:",),
    says=TABLE.says,
    read=TABLE.read,
    facts=_facts,
    remedy="start SGLang with --enable-metrics",
)
