"""vLLM's deeper families as its own metric classes print them: speculation, offload, transfer, refusals."""

import pytest

from pinchpoint.snapshot import EngineReading, EngineTarget, Reason, ReplicaReading
from pinchpoint.sources.engine import reading_from_body
from tests.sources.engine.sequences import diagnosed, gauge, histogram, state

TARGET = EngineTarget(engine="chat", url="http://127.0.0.1:8000")


def read(*parts: str) -> EngineReading:
    return reading_from_body(TARGET, "".join(parts).encode(), None, 1.0)


def replica(*parts: str) -> ReplicaReading:
    (one,) = read(*parts).replicas
    return one


def test_requests_whose_blocks_are_fetched_are_told_by_stage():
    stages = {"waiting_to_start": 3, "in_progress": 2, "completed_waiting": 1}
    lines = (gauge("num_requests_kv_fetch_by_stage", n, stage=stage) for stage, n in stages.items())
    assert replica(*lines).requests_kv_fetch_by_stage == stages


def test_prompt_tokens_are_told_by_source_and_cached_ones_by_tier():
    sources = {"local_compute": 60, "local_cache_hit": 30, "external_kv_transfer": 10}
    tiers = {"device": 30, "host": 6, "disk": 3, "p2p": 1, "external_unspecified": 0}
    found = replica(
        *(gauge("prompt_tokens_by_source_total", n, source=source) for source, n in sources.items()),
        *(gauge("prompt_tokens_cached_by_source_total", n, source=tier) for tier, n in tiers.items()),
        gauge("prompt_tokens_cached_total", 40),
    )
    assert found.prompt_tokens_by_source_total == sources
    assert found.prompt_tokens_computed_total == 60
    assert found.prompt_tokens_cached_by_tier_total == tiers
    assert found.prompt_tokens_cached_total == sum(tiers.values())


def test_speculation_is_told_in_drafts_tokens_and_positions():
    accepted = {"0": 50, "1": 20, "2": 5}
    found = replica(
        gauge("spec_decode_num_drafts_total", 60),
        gauge("spec_decode_num_draft_tokens_total", 180),
        gauge("spec_decode_num_accepted_tokens_total", 75),
        *(gauge("spec_decode_num_accepted_tokens_per_pos_total", n, position=at) for at, n in accepted.items()),
    )
    assert (found.speculative_drafts_total, found.speculative_draft_tokens_total) == (60, 180)
    assert found.speculative_accepted_tokens_total == 75
    assert found.speculative_accepted_tokens_by_position_total == accepted


@pytest.mark.parametrize(("value", "expected"), [("-1.0", None), ("0.0", 0.0), ("0.45", 0.45)])
def test_a_hit_rate_of_minus_1_says_that_prefix_caching_is_off(value: str, expected: float | None):
    reading = read(gauge("gpu_prefix_cache_hit_rate", value), gauge("num_requests_running", 0))
    assert reading.replicas[0].prefix_cache_hit_ratio == expected
    assert (reading.warnings, reading.unavailable) == ((), {})


NEW = (
    gauge("kv_offload_load_bytes_total", 300) + gauge("kv_offload_store_bytes_total", 500)
    + gauge("kv_offload_load_time_total", 3) + gauge("kv_offload_store_time_total", 5)
)  # fmt: skip
OLD = "".join(
    gauge(f"kv_offload_total_{what}_total", value, transfer_type=direction)
    for what, direction, value in (
        ("bytes", "CPU_to_GPU", 30), ("bytes", "GPU_to_CPU", 50), ("time", "CPU_to_GPU", 1), ("time", "GPU_to_CPU", 2),
    )
)  # fmt: skip


@pytest.mark.parametrize(
    ("body", "expected"), [(NEW, (300, 500, 3, 5)), (OLD, (30, 50, 1, 2)), (NEW + OLD, (300, 500, 3, 5))]
)
def test_offload_is_read_by_direction_in_its_old_and_new_names_and_not_twice(body: str, expected: tuple[float, ...]):
    found = replica(body)
    assert expected == (
        found.kv_offload_load_bytes_total,
        found.kv_offload_store_bytes_total,
        found.kv_offload_load_seconds_total,
        found.kv_offload_store_seconds_total,
    )


def test_sizes_of_offload_are_told_apart_by_direction():
    line = histogram("kv_offload_size", [1.0, 1.0]).replace(
        'model_name="m"', 'model_name="m",transfer_type="CPU_to_GPU"'
    )
    other = histogram("kv_offload_size", [9.0]).replace('model_name="m"', 'model_name="m",transfer_type="GPU_to_CPU"')
    found = replica(line, other)
    assert found.kv_offload_load_size_bytes is not None
    assert found.kv_offload_store_size_bytes is not None
    assert (found.kv_offload_load_size_bytes.count, found.kv_offload_store_size_bytes.sum) == (2, 9)


def test_the_offload_tiers_usage_is_not_taken_for_the_old_swap_spaces():
    found = replica(gauge("kv_offload_cpu_cache_usage_perc", 0.5))
    assert (found.kv_offload_cpu_pinned_ratio, found.kv_cache_cpu_usage_ratio) == (0.5, None)
    assert replica(gauge("cpu_cache_usage_perc", 0.25)).kv_cache_cpu_usage_ratio == 0.25


@pytest.mark.parametrize("connector", ["nixl", "mooncake"])
def test_transfers_between_engines_are_read_whichever_connector_makes_them(connector: str):
    found = replica(
        histogram(f"{connector}_xfer_time_seconds", [0.2, 0.3]),
        histogram(f"{connector}_bytes_transferred", [5.0, 5.0]),
        gauge(f"{connector}_num_failed_transfers_total", 2),
        gauge(f"{connector}_num_kv_expired_reqs_total", 7),
    )
    assert found.kv_transfer_seconds is not None
    assert found.kv_transfer_size_bytes is not None
    assert (found.kv_transfer_seconds.sum, found.kv_transfer_size_bytes.sum) == (0.5, 10)
    assert (found.kv_transfer_failures_total, found.kv_transfer_expired_requests_total) == (2, 7)


def test_operations_on_a_shared_store_are_added_up_over_their_outcomes():
    lines = (
        gauge("mooncake_store_operation_total", n, operation=operation, status=status)
        for operation, status, n in (("load_get", "ok", 5), ("load_get", "failed", 1), ("save_put", "ok", 3))
    )
    assert replica(*lines).kv_store_operations_total == {"load_get": 6, "save_put": 3}


ESTIMATES = (
    "estimated_flops_per_gpu_total",
    "estimated_read_bytes_per_gpu_total",
    "estimated_write_bytes_per_gpu_total",
)


def test_estimates_that_stay_at_0_while_tokens_are_made_are_switched_off():
    reading = read(state(1, 0, 0.1, tokens=50), *(gauge(name, 0.0) for name in ESTIMATES))
    assert [getattr(reading.replicas[0], name) for name in ESTIMATES] == [None] * 3
    assert reading.unavailable == dict.fromkeys(ESTIMATES, Reason.NOT_ENABLED)
    assert reading.warnings == ()


def test_estimates_before_the_first_token_are_unknown_and_not_yet_called_off():
    reading = read(state(0, 0, 0.0, tokens=0), *(gauge(name, 0.0) for name in ESTIMATES))
    assert [getattr(reading.replicas[0], name) for name in ESTIMATES] == [None] * 3
    assert reading.unavailable == {}


def test_estimates_that_move_are_read():
    reading = read(state(1, 0, 0.1, tokens=50), *(gauge(name, 1e12) for name in ESTIMATES))
    assert [getattr(reading.replicas[0], name) for name in ESTIMATES] == [1e12] * 3


def test_what_the_server_says_as_a_whole_is_no_replicas():
    reading = read(
        *(state(1, 0, 0.1, 1, engine=str(n)) for n in range(2)),
        'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 4\n',
        'vllm:admission_rejections_total{model_name="m",reason="max_num_queued_tokens"} 0\n',
        'vllm:sleep_mode_operations_in_flight{operation="wake"} 1\n',
    )
    assert [r.replica for r in reading.replicas] == ["0", "1"]
    assert reading.frontend.admission_rejections_total == {"max_num_queued_reqs": 4, "max_num_queued_tokens": 0}
    assert reading.frontend.sleep_operations_in_flight == {"wake": 1}


@pytest.mark.parametrize("bounds", [("+Inf",), ("0.123", "4.56", "+Inf")])
def test_custom_buckets_are_taken_as_they_are(bounds: tuple[str, ...]):
    name = "time_to_first_token_seconds"
    lines = (gauge(f"{name}_bucket", 2, le=bound) for bound in bounds)
    ttft = replica(*lines, gauge(f"{name}_sum", 0.4), gauge(f"{name}_count", 2)).ttft_seconds
    assert ttft is not None
    assert ttft.bounds == tuple(float(bound) for bound in bounds)
    assert ttft.mean == 0.2


def test_requests_swapped_out_wait_for_memory_too():
    """vLLM before 0.4.3 counts no preemptions: what it swapped is all that tells."""

    def step(n: int) -> str:
        return state(6, 0, 0.97, tokens=60 * n) + gauge("num_requests_swapped", 5)

    assert diagnosed([step(n) for n in range(30)]).bottleneck == "kv_capacity"
    assert diagnosed([step(n).replace("} 5\n", "} 0\n") for n in range(30)]).bottleneck == "healthy"
