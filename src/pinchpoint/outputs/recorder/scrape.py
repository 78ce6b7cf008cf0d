"""An engine's reading as the scrape that it could have come from, in vLLM's names (vllm/v1/metrics/loggers.py).

The raw body is gone by the time a tick is recorded; what a reading holds comes back from this text as it was.
"""

import json
from collections.abc import Iterator, Mapping

from pinchpoint.outputs.recorder.vllm_names import LABELLED, NAMES, SLEEP_STATES
from pinchpoint.snapshot import Absence, EngineReading, FrontendReading, Histogram, ReplicaReading

_Labels = Mapping[str, str]
_Value = float | Histogram | None


def scrape_text(reading: EngineReading, start: float) -> str:
    """Text 0.0.4 of every replica, its time since ``start`` in a comment above. What is unknown is not in it."""
    families: dict[str, list[str]] = {}
    for name, labels, value in _of_server(reading.frontend):
        families.setdefault(name, []).extend(_lines(f"vllm:{name}", labels, value))
    for replica in reading.replicas:
        own = {"engine": replica.replica} | ({"model_name": replica.model} if replica.model else {})
        for name, labels, value in _values(replica):
            families.setdefault(name, []).extend(_lines(f"vllm:{name}", {**own, **labels}, value))
    stamp = _stamp({"at": round(reading.at - start, 3)})
    return (
        stamp
        + _started(reading)
        + "".join(f"# TYPE vllm:{name} {_kind(name, lines)}\n" + "".join(lines) for name, lines in families.items())
    )


def _started(reading: EngineReading) -> str:
    """The server's own start time, by which a restart is told."""
    at = reading.epoch.partition("#")[0]
    return f"process_start_time_seconds {at}\n" if at.replace(".", "", 1).isdecimal() else ""


def absence_text(absence: Absence, start: float) -> str:
    """A scrape that was not to be had: nothing but the comment that says why."""
    return _stamp({"at": round(absence.at - start, 3), "absent": absence.reason, "detail": absence.detail})


def _stamp(said: Mapping[str, object]) -> str:
    return f"# pinchpoint {json.dumps(said)}\n"


def _kind(name: str, lines: list[str]) -> str:
    if any(line.startswith(f"vllm:{name}_bucket") for line in lines):
        return "histogram"
    return "counter" if name.endswith("_total") else "gauge"


def _values(replica: ReplicaReading) -> Iterator[tuple[str, _Labels, _Value]]:
    for field, name in NAMES.items():
        yield name, {}, getattr(replica, field)
    for field, (name, label) in LABELLED.items():
        for key, number in getattr(replica, field).items():
            yield name, {label: key}, number
    if "local_compute" not in replica.prompt_tokens_by_source_total:
        yield "prompt_tokens_by_source_total", {"source": "local_compute"}, replica.prompt_tokens_computed_total
    if replica.awake is not None:
        level = 0 if replica.awake else replica.sleep_level
        for number, state in enumerate(SLEEP_STATES):
            yield "engine_sleep_state", {"sleep_state": state}, float(level == number)
    if (tokens := replica.kv_cache_capacity_tokens) is not None:
        yield "cache_config_info", {"kv_cache_size_tokens": str(int(tokens))}, 1.0


def _of_server(frontend: FrontendReading) -> Iterator[tuple[str, _Labels, _Value]]:
    for reason, number in frontend.admission_rejections_total.items():
        yield "admission_rejections_total", {"reason": reason}, number
    for operation, number in frontend.sleep_operations_in_flight.items():
        yield "sleep_mode_operations_in_flight", {"operation": operation}, number
    if frontend.lora_adapters_max is not None:
        adapters = {"running": frontend.lora_running, "waiting": frontend.lora_waiting}
        labels = {f"{state}_lora_adapters": ",".join(names) for state, names in adapters.items()}
        yield "lora_requests_info", {"max_lora": f"{frontend.lora_adapters_max:.0f}", **labels}, 1.0


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
