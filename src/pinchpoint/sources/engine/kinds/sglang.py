"""SGLang's vocabulary: sglang/srt/metrics/collector.py (0.3 to 0.5.23).

A scheduler's gauges are said by every tensor-parallel, pipeline and expert rank that publishes (copies of one value)
and by each data-parallel rank (replicas). Requests are counted before a rank is chosen, once by ``is_streaming``: so
with several ranks these counts are a replica of their own, ``all``. With priorities, gauges come in parts beside their
total. Not read: ``gen_throughput``, which keeps its last value at rest, and ``cache_hit_rate``, which is 0 in decode.
"""

from collections.abc import Mapping
from dataclasses import replace

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind, Translation
from pinchpoint.sources.engine.kinds.table import Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Layout, Term, Value, Warn, read_term


def _replica_of(labels: Mapping[str, str]) -> str:
    return labels.get("dp_rank", "")


_LAYOUT = Layout(_replica_of, frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"}), split="priority")

_RUNNING = Term(Kind.GAUGE, ("sglang:num_running_reqs", "sglang:num_running_req"))
# Where prefill and decode are apart, a request also waits in these: for room in the KV cache, or for the other side.
_QUEUES: Mapping[str, tuple[Term, ...]] = {
    "capacity": (
        Term(Kind.GAUGE, ("sglang:num_queue_reqs", "sglang:num_queue_req", "sglang:queue_req")),
        Term(Kind.GAUGE, ("sglang:num_decode_prealloc_queue_reqs",)),
    ),
    "deferred": tuple(
        Term(Kind.GAUGE, (f"sglang:num_{queue}_queue_reqs",))
        for queue in ("grammar", "prefill_bootstrap", "prefill_prealloc", "decode_transfer", "decode_host_receive")
    ),
}
_SENDING = Term(Kind.GAUGE, ("sglang:num_prefill_inflight_queue_reqs",))
ONE_OF_SEVERAL = "one data-parallel rank of {ranks} is shown, without a dp_rank label: counts are the last writer's"


def _derived(families: Families, warn: Warn) -> Derived:
    found: dict[str, dict[str, Value]] = {}
    for replica, tokens in _capacity(families).items():
        found.setdefault(replica, {})["kv_cache_capacity_tokens"] = tokens
    waiting: dict[str, dict[str, float]] = {}
    for reason, queues in _QUEUES.items():
        for queue in queues:
            for replica, value in _read(queue, families, warn).items():
                by_reason = waiting.setdefault(replica, {})
                by_reason[reason] = by_reason.get(reason, 0.0) + value
    for replica, by_reason in waiting.items():
        found.setdefault(replica, {}).update(
            requests_waiting=sum(by_reason.values()), requests_waiting_by_reason=by_reason
        )
    # A prefill server hands each request on: those whose KV blocks are on their way are what it runs.
    sending = _read(_SENDING, families, warn)
    for replica, value in _read(_RUNNING, families, warn).items():
        found.setdefault(replica, {})["requests_running"] = max(value, sending.get(replica, 0.0))
    return found


def _read(term: Term, families: Families, warn: Warn) -> dict[str, float]:
    values = read_term(term, families, warn, _LAYOUT)
    return {replica: value for replica, value in values.items() if isinstance(value, float)}


def _capacity(families: Families) -> dict[str, float]:
    told = gauges(families, _LAYOUT, "sglang:max_total_num_tokens")
    pages, size = gauges(families, _LAYOUT, "sglang:num_pages"), gauges(families, _LAYOUT, "sglang:page_size")
    paged = {replica: count * size[replica] for replica, count in pages.items() if replica in size}
    return {replica: tokens for replica, tokens in {**paged, **told}.items() if tokens}


TABLE = Table(
    layout=_LAYOUT,
    prefix="sglang:",
    derived=_derived,
    derives=frozenset(
        {"kv_cache_capacity_tokens", "requests_waiting", "requests_waiting_by_reason", "requests_running"}
    ),
    terms={
        # Live requests only: the radix cache's evictable tokens are free. The fullest of all pools of a hybrid model.
        "kv_cache_usage_ratio": Term(Kind.RATIO, ("sglang:token_usage", "sglang:full_token_usage")),
        "preemptions_total": Term(Kind.COUNTER, ("sglang:num_retracted_requests",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("sglang:prompt_tokens",)),
        "prompt_tokens_computed_total": Term(
            Kind.COUNTER, ("sglang:realtime_tokens",), where=("mode", "prefill_compute")
        ),
        "generation_tokens_total": Term(Kind.COUNTER, ("sglang:generation_tokens",)),
        "prefix_cache_queries_total": Term(Kind.COUNTER, ("sglang:prompt_tokens",)),  # every one is looked up
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("sglang:cached_tokens",)),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("sglang:time_to_first_token_seconds",)),
        "inter_token_seconds": Term(
            Kind.HISTOGRAM, ("sglang:inter_token_latency_seconds", "sglang:time_per_output_token_seconds")
        ),
        "tpot_seconds": Term(Kind.HISTOGRAM, ("sglang:request_time_per_output_token_seconds",)),
        "queue_seconds": Term(Kind.HISTOGRAM, ("sglang:queue_time_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("sglang:e2e_request_latency_seconds",)),
    },
)


def _translate(families: Families, said: EngineFacts) -> Translation:
    told = TABLE.read(families, said)
    ranks = said.data_parallel_size or 1
    if ranks > 1 and [replica.replica for replica in told.replicas] == ["0"]:
        return replace(told, warnings=(*told.warnings, ONE_OF_SEVERAL.format(ranks=ranks)))
    return told


def _facts(families: Families) -> EngineFacts:
    context = max(gauges(families, _LAYOUT, "sglang:context_len").values(), default=0)
    page = max(gauges(families, _LAYOUT, "sglang:page_size").values(), default=0)
    return EngineFacts(max_model_len=int(context) or None, block_size=int(page) or None)


KIND = EngineKind(
    name="sglang",
    title="SGLang",
    marks=("sglang:",),
    says=TABLE.says,
    read=_translate,
    facts=_facts,
    remedy="start SGLang with --enable-metrics",
    running_lag_seconds=30.0,  # its gauges are refreshed that seldom at rest
)
