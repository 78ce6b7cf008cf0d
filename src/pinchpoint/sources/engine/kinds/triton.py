"""Triton, at port 8002: the TensorRT-LLM backend's blocks and requests, the vLLM backend's part of vLLM's names.

Sources: the server's docs/user_guide/metrics.md; the backend's custom_metrics_reporter.cc. An ensemble counts a request
once more, so ``nv_inference_*`` are those of the model that has ``nv_trt_llm_*`` or, where none has (the Python
backend), of the busiest. Triton has no histogram of latency but the first response's, and that only on request.
"""

from collections.abc import Mapping
from dataclasses import replace

from pinchpoint.snapshot import EngineFacts, Histogram, Reason
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.engine.kinds import vllm
from pinchpoint.sources.engine.kinds.kind import JUDGED_BY, EngineKind, Translation
from pinchpoint.sources.engine.kinds.table import Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Layout, Term, Value, Warn, read_term

_REQUESTS, _BLOCKS = "nv_trt_llm_request_metrics", "nv_trt_llm_kv_cache_block_metrics"
# Of the same request, said by each model that it passes and by each version of it.
_LAYOUT = Layout(lambda _labels: "0", copies=frozenset({"model", "version"}))
_FIRST = Term(Kind.HISTOGRAM, ("nv_inference_first_response_histogram_ms",))
_DONE = Term(Kind.COUNTER, ("nv_inference_request_success",))
_MICROSECONDS = {
    "queue_seconds": Term(Kind.COUNTER, ("nv_inference_queue_duration_us",)),
    "e2e_seconds": Term(Kind.COUNTER, ("nv_inference_request_duration_us",)),
}


def _derived(families: Families, warn: Warn) -> Derived:
    def block(kind: str) -> float | None:
        return gauges(families, _LAYOUT, _BLOCKS, kv_cache_block_type=kind).get("0")

    found: dict[str, Value] = {}
    used, most, size = block("used"), block("max"), block("tokens_per")
    if most and used is not None and used <= most:
        found["kv_cache_usage_ratio"] = used / most
    if most and size:
        found["kv_cache_capacity_tokens"] = most * size
    first = read_term(_FIRST, families, warn, _LAYOUT).get("0")
    if isinstance(first, Histogram):
        found["ttft_seconds"] = Histogram(
            tuple(bound / 1e3 for bound in first.bounds), first.counts, first.sum / 1e3, first.count
        )
    done = read_term(_DONE, families, warn, _LAYOUT).get("0")
    for field, term in _MICROSECONDS.items():
        spent = read_term(term, families, warn, _LAYOUT).get("0")
        if isinstance(spent, float) and isinstance(done, float):
            found[field] = Histogram((float("inf"),), (done,), spent / 1e6, done)  # a mean, and no quantile
    return {"0": found} if found else {}


TABLE = Table(
    layout=_LAYOUT,
    prefix="nv_trt_llm_",
    derived=_derived,
    derives=frozenset({"kv_cache_usage_ratio", "kv_cache_capacity_tokens", "ttft_seconds", *_MICROSECONDS}),
    terms={
        "requests_running": Term(Kind.GAUGE, (_REQUESTS,), where=("request_type", "active")),
        "requests_waiting": Term(Kind.GAUGE, (_REQUESTS,), where=("request_type", "waiting")),
        "steps_total": Term(Kind.GAUGE, ("nv_trt_llm_general_metrics",), where=("general_type", "iteration_counter")),
        "prompt_tokens_total": Term(Kind.COUNTER, ("nv_llm_input_token_len_sum",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("nv_llm_output_token_len_sum",)),
    },
)


def _read(families: Families, said: EngineFacts) -> Translation:
    if vllm.KIND.speaks_in(families.names):
        told = vllm.KIND.read(families, said)
        silent = {n for n in JUDGED_BY if all(getattr(replica, n) is None for replica in told.replicas)}
        return replace(told, unavailable={**dict.fromkeys(sorted(silent), Reason.NOT_EXPOSED), **told.unavailable})
    return TABLE.read(_of_the_model(families), said)


def _of_the_model(families: Families) -> Families:
    """Only what the language model says, where one is known by its blocks.

    A backend that registers these families and never sets them (all zero, the largest allowed number of requests too)
    says nothing.
    """
    told = gauges(families, _LAYOUT, _REQUESTS, request_type="max").get("0", 1.0) > 0
    models = {sample.labels.get("model") for sample in families.samples.get(_REQUESTS, ())} if told else set()

    def kept(name: str, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
        if name.startswith("nv_trt_llm_") and not told:
            return ()
        return tuple(s for s in samples if not models or s.labels.get("model", "") in {*models, ""})

    return replace(families, samples={name: kept(name, samples) for name, samples in families.samples.items()})


def _facts(families: Families) -> EngineFacts:
    if vllm.KIND.speaks_in(families.names):
        return vllm.KIND.facts(families)
    slots: Mapping[str, float] = gauges(families, _LAYOUT, _REQUESTS, request_type="max")
    block = gauges(families, _LAYOUT, _BLOCKS, kv_cache_block_type="tokens_per")
    return EngineFacts(max_num_seqs=int(slots.get("0", 0)) or None, block_size=int(block.get("0", 0)) or None)


KIND = EngineKind(
    name="triton",
    title="Triton",
    marks=("nv_inference_", "nv_trt_llm_", "nv_llm_"),
    says=TABLE.says,
    read=_read,
    facts=_facts,
    remedy="Triton's metrics are at port 8002; check url",
)
