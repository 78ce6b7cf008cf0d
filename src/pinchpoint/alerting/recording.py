"""Recording rules: what weeks are looked at by, for raw samples of weeks are slow to read and soon thrown away.

Named ``level:metric:operation``. No alert rests on them, and the dashboards work without. What may be added up is
recorded as it is, so that a share of a week is the sum of its parts over the sum of the wholes, never a mean of shares.
"""

from dataclasses import dataclass

_OF_ENGINE = "without (replica, model)"
_KV = "pinchpoint_engine_kv_cache_usage_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One Prometheus recording rule: ``record`` is the new series' name, ``expr`` what it is."""

    record: str
    expr: str


def _increase(metric: str, operation: str = "increase1h") -> Recording:
    return Recording(
        record=f"engine:{metric.removesuffix('_total')}:{operation}",
        expr=f"sum {_OF_ENGINE} (increase({metric}[1h]))",
    )


def _quantile(signal: str) -> Recording:
    """Nothing where nothing was observed: a quantile of nothing is NaN."""
    metric = f"pinchpoint_engine_{signal}_seconds"
    return Recording(
        record=f"engine:{metric}:p95_5m",
        expr=(
            f"histogram_quantile(0.95, sum {_OF_ENGINE} (rate({metric}_bucket[5m])))\n"
            f"and sum {_OF_ENGINE} (rate({metric}_count[5m])) > 0"
        ),
    )


RECORDINGS: tuple[Recording, ...] = (
    Recording(record=f"engine:{_KV}:max5m", expr=f"max {_OF_ENGINE} (max_over_time({_KV}[5m]))"),
    Recording(record=f"engine:{_KV}:p95_1h", expr=f"max {_OF_ENGINE} (quantile_over_time(0.95, {_KV}[1h]))"),
    Recording(
        record="engine:pinchpoint_bottleneck_class:share1h",
        expr="increase(pinchpoint_bottleneck_class_seconds_total[1h]) / 3600",
    ),
    Recording(
        record="engine:pinchpoint_engine_requests_waiting:max5m",
        expr=f"sum {_OF_ENGINE} (max_over_time(pinchpoint_engine_requests_waiting[5m]))",
    ),
    Recording(
        record="engine:pinchpoint_engine_requests_running:avg5m",
        expr=f"sum {_OF_ENGINE} (avg_over_time(pinchpoint_engine_requests_running[5m]))",
    ),
    _quantile("ttft"),
    _quantile("inter_token"),
    _increase("pinchpoint_engine_slo_events_total"),
    _increase("pinchpoint_engine_slo_good_events_total"),
    _increase("pinchpoint_engine_prompt_tokens_total"),
    _increase("pinchpoint_engine_generation_tokens_total"),
    _increase("pinchpoint_engine_preemptions_total"),
    Recording(
        record="gpu:pinchpoint_gpu_utilization_ratio:avg5m", expr="avg_over_time(pinchpoint_gpu_utilization_ratio[5m])"
    ),
    Recording(
        record="gpu:pinchpoint_gpu_memory_used_bytes:max5m", expr="max_over_time(pinchpoint_gpu_memory_used_bytes[5m])"
    ),
    Recording(
        record="gpu:pinchpoint_gpu_energy_joules:increase1h", expr="increase(pinchpoint_gpu_energy_joules_total[1h])"
    ),
    Recording(
        record="target:pinchpoint_probe_spend_usd:increase1h", expr="increase(pinchpoint_probe_spend_usd_total[1h])"
    ),
)
