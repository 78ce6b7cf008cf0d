import re
from dataclasses import fields

import pytest

from pinchpoint.outputs.catalog import CATALOG, Kind, Metric
from pinchpoint.snapshot import FrontendReading, GpuReading, ReplicaReading

# Labels that the scrape owns, or that mean too much.
TAKEN = {"job", "instance", "type", "le", "quantile", "service", "cluster", "env", "region", "zone"}


def test_no_two_rows_share_a_name_or_a_family():
    series = [name for metric in CATALOG for name in metric.series_names]
    assert len(series) == len(set(series))
    assert len(CATALOG) == len({metric.family for metric in CATALOG})


@pytest.mark.parametrize("metric", CATALOG, ids=lambda metric: metric.name)
def test_a_row_is_named_and_described_as_prometheus_wants_it(metric):
    assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)*", metric.name)
    assert re.fullmatch(r"[^\n\\\"]+\.", metric.help), "one line that needs no escape and ends in a full stop"
    assert not TAKEN & set(metric.labels)
    assert len(set(metric.labels)) == len(metric.labels)
    assert metric.name.endswith("_total") == (metric.kind is Kind.COUNTER)
    assert metric.name.endswith("_info") == (metric.kind is Kind.INFO)


def test_a_counter_without_total_is_refused():
    with pytest.raises(ValueError, match="counter things must end in _total"):
        Metric(name="things", kind=Kind.COUNTER, help="T.", labels=(), read=lambda _: ())


@pytest.mark.parametrize(
    ("reading", "family"), [(GpuReading, "gpu"), (ReplicaReading, "engine"), (FrontendReading, "engine")]
)
def test_every_number_of_a_reading_has_a_row(reading, family):
    numbers = {f.name for f in fields(reading) if re.search("float|Histogram|bool", str(f.type))}
    names = {metric.name.removeprefix(f"{family}_") for metric in CATALOG}
    assert numbers - {"at", "last_success_at"} - names == set()


def test_the_names_that_dashboards_and_alerts_of_users_rest_on_are_there():
    """A name that was released stays."""
    names = {metric.name for metric in CATALOG}
    assert names >= {
        "advice", "bottleneck", "bottleneck_class_code", "bottleneck_class_seconds_total",
        "bottleneck_confidence_ratio", "bottleneck_score", "build_info", "config_last_reload_successful",
        "diagnosis_signal", "engine_decode_seconds", "engine_e2e_seconds", "engine_generation_tokens_total",
        "engine_info", "engine_inter_token_seconds", "engine_kv_cache_capacity_tokens",
        "engine_kv_cache_usage_ratio", "engine_preemptions_total", "engine_prefill_seconds",
        "engine_prefix_cache_hits_total", "engine_prefix_cache_queries_total", "engine_prompt_tokens_total",
        "engine_queue_seconds", "engine_request_success_total", "engine_requests_running",
        "engine_requests_waiting", "engine_ttft_seconds", "engine_up", "event_loop_lag_seconds",
        "gpu_clock_hertz", "gpu_clock_max_hertz", "gpu_dram_active_ratio", "gpu_ecc_errors_total",
        "gpu_energy_joules_total", "gpu_info", "gpu_memory_controller_utilization_ratio",
        "gpu_memory_reserved_bytes", "gpu_memory_total_bytes", "gpu_memory_used_bytes",
        "gpu_pcie_link_generation", "gpu_pcie_link_generation_max", "gpu_pcie_link_width",
        "gpu_pcie_link_width_max", "gpu_pcie_receive_bytes_per_second", "gpu_pcie_transmit_bytes_per_second",
        "gpu_peer_link_info", "gpu_power_limit_watts", "gpu_power_watts", "gpu_sm_active_ratio",
        "gpu_temperature_celsius", "gpu_tensor_active_ratio", "gpu_throttle_active",
        "gpu_throttle_seconds_total", "gpu_up", "gpu_utilization_ratio", "gpu_xid_errors_total",
        "gpus_expected", "gpus_visible", "metric_unavailable", "more_gpus_help", "probe_duration_seconds",
        "probe_failures_total", "probe_last_tpot_seconds", "probe_last_ttft_seconds",
        "probe_local_to_hosted_ratio", "probe_phase_seconds", "probe_requests_total", "probe_skipped_total",
        "probe_tokens_total", "probe_tpot_seconds", "probe_ttft_seconds", "probe_up", "simulated",
        "source_duration_seconds", "source_last_success_timestamp_seconds", "source_up",
    }  # fmt: skip
