"""Text Generation Inference's vocabulary (router/src of 3.x): seconds without the unit in the name, counters without
``_total``, families that begin with the first request.

It exposes no use of its KV cache. The tokens its batch may still grow to, over what any batch may hold, is its own
scheduler's measure of room: read as KV usage, and said so in a warning. Token counts are those of finished requests;
its batches show progress before. ``tgi_request_mean_time_per_token_duration`` is inference time over tokens, prefill
included: no TPOT, and not read.
"""

from pinchpoint.sources.engine.exposition import Families
from pinchpoint.sources.engine.kinds.kind import EngineKind
from pinchpoint.sources.engine.kinds.table import ONE_REPLICA, Derived, Table, gauges
from pinchpoint.sources.engine.vocabulary import Kind, Term, Value, Warn

BUDGET = "KV usage is TGI's token budget (tgi_batch_current_max_tokens over the most), not blocks in use"


def _budget(families: Families, warn: Warn) -> Derived:
    most = gauges(families, ONE_REPLICA, "tgi_batch_max_total_tokens").get("0")
    now = gauges(families, ONE_REPLICA, "tgi_batch_current_max_tokens").get("0")
    found: dict[str, Value] = {"kv_cache_capacity_tokens": most} if most else {}
    if most and now is not None and now <= most:
        warn(BUDGET)
        found["kv_cache_usage_ratio"] = now / most
    return {"0": found} if found else {}


TABLE = Table(
    derived=_budget,
    derives=frozenset({"kv_cache_capacity_tokens", "kv_cache_usage_ratio"}),
    prefix="tgi_",
    terms={
        # IBM's fork garbles the label (method="{'method': 'prefill'}"): so all methods together.
        "steps_total": Term(Kind.COUNTER, ("tgi_batch_inference_count",)),
        "requests_running": Term(Kind.GAUGE, ("tgi_batch_current_size",)),
        "requests_waiting": Term(Kind.GAUGE, ("tgi_queue_size",)),
        "prompt_tokens_total": Term(Kind.COUNTER, ("tgi_request_input_length_sum",)),
        "generation_tokens_total": Term(Kind.COUNTER, ("tgi_request_generated_tokens_sum",)),
        "queue_seconds": Term(Kind.HISTOGRAM, ("tgi_request_queue_duration",)),
        "inference_seconds": Term(Kind.HISTOGRAM, ("tgi_request_inference_duration",)),
        "request_prompt_tokens": Term(Kind.HISTOGRAM, ("tgi_request_input_length",)),
        "request_generation_tokens": Term(Kind.HISTOGRAM, ("tgi_request_generated_tokens",)),
        "request_max_tokens": Term(Kind.HISTOGRAM, ("tgi_request_max_new_tokens",)),
        "e2e_seconds": Term(Kind.HISTOGRAM, ("tgi_request_duration",)),
    },
)

KIND = EngineKind(name="tgi", title="TGI", marks=("tgi_",), says=TABLE.says, read=TABLE.read, lazy=True)
