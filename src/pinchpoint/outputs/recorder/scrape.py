"""An engine's reading as the scrape that it could have come from, in vLLM's names (vllm/v1/metrics/loggers.py).

The raw body is gone by the time a tick is recorded; what a reading holds comes back from this text as it was.
"""

import json
from collections.abc import Iterator, Mapping

from pinchpoint.snapshot import Absence, EngineReading, Histogram, ReplicaReading

# Reading's field -> vLLM's name and type.
_PLAIN: Mapping[str, tuple[str, str]] = {
    "requests_running": ("num_requests_running", "gauge"),
    "requests_waiting": ("num_requests_waiting", "gauge"),
    "kv_cache_usage_ratio": ("kv_cache_usage_perc", "gauge"),
    "preemptions_total": ("num_preemptions_total", "counter"),
    "prompt_tokens_total": ("prompt_tokens_total", "counter"),
    "generation_tokens_total": ("generation_tokens_total", "counter"),
    "prefix_cache_queries_total": ("prefix_cache_queries_total", "counter"),
    "prefix_cache_hits_total": ("prefix_cache_hits_total", "counter"),
    "ttft_seconds": ("time_to_first_token_seconds", "histogram"),
    "inter_token_seconds": ("inter_token_latency_seconds", "histogram"),
    "queue_seconds": ("request_queue_time_seconds", "histogram"),
    "prefill_seconds": ("request_prefill_time_seconds", "histogram"),
    "decode_seconds": ("request_decode_time_seconds", "histogram"),
    "e2e_seconds": ("e2e_request_latency_seconds", "histogram"),
    "iteration_tokens": ("iteration_tokens_total", "histogram"),
}

_Labels = Mapping[str, str]
_Value = float | Histogram | None


def scrape_text(reading: EngineReading, start: float) -> str:
    """Text 0.0.4 of every replica, its time since ``start`` in a comment above. What is unknown is not in it."""
    families: dict[tuple[str, str], list[str]] = {}
    for replica in reading.replicas:
        labels = {"engine": replica.replica} | ({"model_name": replica.model} if replica.model else {})
        for name, kind, more, value in _values(replica):
            families.setdefault((name, kind), []).extend(_lines(f"vllm:{name}", {**labels, **more}, value))
    stamp = _stamp({"at": round(reading.at - start, 3)})
    return stamp + "".join(f"# TYPE vllm:{name} {kind}\n" + "".join(lines) for (name, kind), lines in families.items())


def absence_text(absence: Absence, start: float) -> str:
    """A scrape that was not to be had: nothing but the comment that says why."""
    return _stamp({"at": round(absence.at - start, 3), "absent": absence.reason, "detail": absence.detail})


def _stamp(said: Mapping[str, object]) -> str:
    return f"# pinchpoint {json.dumps(said)}\n"


def _values(replica: ReplicaReading) -> Iterator[tuple[str, str, _Labels, _Value]]:
    for field, (name, kind) in _PLAIN.items():
        yield name, kind, {}, getattr(replica, field)
    for reason, number in replica.requests_waiting_by_reason.items():
        yield "num_requests_waiting_by_reason", "gauge", {"reason": reason}, number
    for reason, number in replica.request_success_total.items():
        yield "request_success_total", "counter", {"finished_reason": reason}, number
    computed = replica.prompt_tokens_computed_total
    yield "prompt_tokens_by_source_total", "counter", {"source": "local_compute"}, computed
    awake = None if replica.awake is None else float(replica.awake)
    yield "engine_sleep_state", "gauge", {"sleep_state": "awake"}, awake
    if (tokens := replica.kv_cache_capacity_tokens) is not None:
        yield "cache_config_info", "gauge", {"kv_cache_size_tokens": str(int(tokens))}, 1.0


def _lines(name: str, labels: _Labels, value: _Value) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, Histogram):
        yield f"{name}{_braces(labels)} {float(value)!r}\n"
        return
    for bound, count in zip(value.bounds, value.counts, strict=True):
        le = "+Inf" if bound == float("inf") else repr(float(bound))
        yield f"{name}_bucket{_braces({**labels, 'le': le})} {float(count)!r}\n"
    yield f"{name}_sum{_braces(labels)} {float(value.sum)!r}\n{name}_count{_braces(labels)} {float(value.count)!r}\n"


def _braces(labels: _Labels) -> str:
    return "{" + ",".join(f"{name}={json.dumps(text, ensure_ascii=False)}" for name, text in labels.items()) + "}"
