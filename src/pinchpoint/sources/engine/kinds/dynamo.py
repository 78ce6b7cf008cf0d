"""Dynamo's frontend: what its clients see (lib/runtime/src/metrics/prometheus_names.rs).

A worker passes its engine's own families on, with labels injected: it is an engine of that kind. The frontend's prefix
can be set by whoever runs it (DYN_METRICS_PREFIX). A request is in flight from its arrival, and waits until its first
token: so what waits here has been computed for a while already.
"""

from pinchpoint.snapshot import EngineFacts
from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import ONE_REPLICA, Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Term, Value, Warn, read_term

PREFIX = "dynamo_frontend_"
BEFORE_FIRST_TOKEN = "waiting are all requests before their first token, those being computed too"  # noqa: S105 - words
_OWN = ("_inflight_requests", "_input_sequence_tokens", "_output_sequence_tokens", "_time_to_first_token_seconds")

_IN_FLIGHT = Term(Kind.GAUGE, ("dynamo_frontend_inflight_requests", "dynamo_frontend_active_requests"))
_QUEUED = Term(Kind.GAUGE, ("dynamo_frontend_queued_requests", "dynamo_frontend_stage_requests"))


def own_prefix(names: frozenset[str]) -> str | None:
    """The prefix under which all of the frontend's telling names are, where it isn't Dynamo's own."""
    for name in names:
        prefix = name.removesuffix(_OWN[0])
        if prefix not in (name, PREFIX.rstrip("_"), "dynamo_component") and all(
            any(other.startswith(prefix + own) for other in names) for own in _OWN
        ):
            return f"{prefix}_"
    return None


def _derived(families: Families, warn: Warn) -> Derived:
    in_flight = read_term(_IN_FLIGHT, families, warn, ONE_REPLICA).get("0")
    queued = read_term(_QUEUED, families, warn, ONE_REPLICA).get("0")
    found: dict[str, Value] = {}
    if isinstance(in_flight, float):
        found["requests_running"] = max(0.0, in_flight - queued) if isinstance(queued, float) else in_flight
    if isinstance(queued, float):
        found["requests_waiting"] = queued
        warn(BEFORE_FIRST_TOKEN)
    blocks, size = _gauge(families, "model_total_kv_blocks"), _gauge(families, "model_kv_cache_block_size")
    if blocks and size:
        found["kv_cache_capacity_tokens"] = blocks * size
    return {"0": found} if found else {}


def _gauge(families: Families, name: str) -> float:
    return gauges(families, ONE_REPLICA, PREFIX + name).get("0", 0.0)


TABLE = Table(
    prefix=PREFIX,
    derived=_derived,
    derives=frozenset({"requests_running", "requests_waiting", "kv_cache_capacity_tokens"}),
    terms={
        "prompt_tokens_total": Term(Kind.COUNTER, ("dynamo_frontend_input_sequence_tokens_sum",)),
        "prefix_cache_hits_total": Term(Kind.COUNTER, ("dynamo_frontend_cached_tokens_sum",)),
        "prefix_cache_queries_total": Term(Kind.COUNTER, ("dynamo_frontend_input_sequence_tokens_sum",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("dynamo_frontend_output_tokens",)),
        "request_success_total": Term(Kind.COUNTER, ("dynamo_frontend_requests",), by="status"),
        "ttft_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_time_to_first_token_seconds",)),
        "inter_token_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_inter_token_latency_seconds",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("dynamo_frontend_request_duration_seconds",)),
    },
)


def _facts(families: Families) -> EngineFacts:
    return EngineFacts(
        max_model_len=int(_gauge(families, "model_context_length")) or None,
        max_num_seqs=int(_gauge(families, "model_max_num_seqs")) or None,
        max_num_batched_tokens=int(_gauge(families, "model_max_num_batched_tokens")) or None,
        block_size=int(_gauge(families, "model_kv_cache_block_size")) or None,
    )


KIND = EngineKind(
    name="dynamo",
    title="Dynamo",
    marks=("dynamo_",),
    says=TABLE.says,
    read=TABLE.read,
    facts=_facts,
    lazy=True,
    passes_on=True,
    remedy="the frontend's metrics are at its HTTP port, a worker's at DYN_SYSTEM_PORT, which is off by default",
)
