"""What odd bodies mean: spellings, absent things, bad values, restarts."""

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Histogram, Reason, ReplicaReading
from pinchpoint.sources.engine import EpochTracker, reading_from_body
from pinchpoint.sources.engine.fingerprint import fold
from pinchpoint.sources.engine.kinds.table import MAX_REPLICAS, MAX_WARNINGS
from pinchpoint.sources.http import SourceError

TARGET = EngineTarget(engine="chat", url="http://127.0.0.1:8000")


def read(*lines: str, target: EngineTarget = TARGET) -> EngineReading:
    return reading_from_body(target, "".join(f"{line}\n" for line in lines).encode(), None, 1.0)


def replica(*lines: str) -> ReplicaReading:
    (one,) = read(*lines).replicas
    return one


@pytest.mark.parametrize("name", ["vllm:x_y", "vllm_x_y", "ray_vllm:x_y", "ray_vllm_x_y"])
def test_every_spelling_of_a_name_is_one(name: str):
    assert fold(name) == "vllm:x_y"


def test_a_counter_counts_with_and_without_total():
    assert replica("vllm:num_preemptions 3").preemptions_total == 3
    assert replica("vllm:num_preemptions_total 3").preemptions_total == 3


def test_an_old_name_beside_the_new_one_is_not_added():
    assert replica("vllm:gpu_cache_usage_perc 0.4", "vllm:kv_cache_usage_perc 0.5").kv_cache_usage_ratio == 0.5


def test_metrics_that_are_only_declared_are_unknown_and_not_zero():
    assert replica("# TYPE vllm:num_requests_running gauge") == ReplicaReading()


@pytest.mark.parametrize("value", ["-0.3875", "1.2"])
def test_a_ratio_outside_its_range_is_dropped_with_a_warning(value: str):
    reading = read(f"vllm:kv_cache_usage_perc {value}", "vllm:num_requests_running 1")
    assert reading.replicas[0].kv_cache_usage_ratio is None
    assert f"kv_cache_usage_perc {value} is outside 0..1" in reading.warnings[0]


@pytest.mark.parametrize("line", ["vllm:num_requests_running 1e19", "vllm:generation_tokens_total 1e308"])
def test_a_number_that_no_engine_can_reach_is_dropped_with_a_warning(line: str):
    reading = read(line, "vllm:num_requests_waiting 1")
    assert (reading.replicas[0].requests_running, reading.replicas[0].generation_tokens_total) == (None, None)
    assert "outside what it can be" in reading.warnings[0]


def test_a_histogram_counts_what_is_in_its_buckets_whatever_else_it_says():
    name = "vllm:iteration_tokens_total"
    lines = [f'{name}_bucket{{le="8"}} 2', f'{name}_bucket{{le="+Inf"}} 3', f"{name}_sum 30", f"{name}_count 1e18"]
    told = replica(*lines).iteration_tokens
    assert told is not None
    assert told.count == 3
    assert replica(*lines[:2], f"{name}_sum -1e308").iteration_tokens is None


def test_a_tiny_usage_keeps_its_precision():
    assert replica("vllm:kv_cache_usage_perc 1.23456789e-05").kv_cache_usage_ratio == 1.23456789e-05


def test_nan_is_unknown():
    assert replica("vllm:kv_cache_usage_perc NaN", "vllm:num_requests_running 1").kv_cache_usage_ratio is None


@pytest.mark.parametrize(
    ("labels", "tokens"),
    [
        ('num_gpu_blocks="10",block_size="16"', 160),
        ('num_gpu_blocks="10",block_size="16",mamba_block_size="None"', 160),
        ('num_gpu_blocks="10",block_size="16",mamba_block_size="784"', None),
        ('num_gpu_blocks="10",block_size="16",mamba_block_size="784",kv_cache_size_tokens="999"', 999),
        ('num_gpu_blocks="10",block_size="4",kv_cache_size_tokens="2560"', 2560),
        ('num_gpu_blocks="None",block_size="16"', None),
        ('num_gpu_blocks="10",block_size="auto"', None),
        ('num_gpu_blocks="0",block_size="16"', None),
        ('num_gpu_blocks="-1",block_size="16"', None),
    ],
)
def test_capacity_is_known_only_where_the_engine_says_it(labels: str, tokens: float | None):
    assert (
        replica("vllm:num_requests_running 1", f"vllm:cache_config_info{{{labels}}} 1").kv_cache_capacity_tokens
        == tokens
    )


def test_a_cache_config_without_engine_label_speaks_for_every_replica():
    reading = read(
        'vllm:num_requests_running{engine="0"} 1',
        'vllm:num_requests_running{engine="1"} 2',
        'vllm:cache_config_info{kv_cache_size_tokens="100"} 1',
    )
    assert [r.kv_cache_capacity_tokens for r in reading.replicas] == [100, 100]


def test_a_family_without_engine_label_that_is_not_read_makes_no_replica():
    reading = read('vllm:num_requests_running{engine="3"} 1', 'vllm:admission_rejections_total{reason="x"} 0')
    assert [r.replica for r in reading.replicas] == ["3"]


def test_replicas_come_in_numeric_order():
    reading = read(*(f'vllm:num_requests_running{{engine="{i}"}} {i}' for i in (10, 2, 0)))
    assert [r.replica for r in reading.replicas] == ["0", "2", "10"]


def test_ray_serves_replicas_are_kept_apart():
    reading = read(
        'ray_vllm_num_requests_running{ReplicaId="a",engine="0",WorkerId="w"} 1',
        'ray_vllm_num_requests_running{ReplicaId="b",engine="0",WorkerId="v"} 2',
    )
    assert [(r.replica, r.requests_running) for r in reading.replicas] == [("a/0", 1), ("b/0", 2)]


@pytest.mark.parametrize(("value", "awake"), [(1, True), (0, False)])
def test_sleep_is_told_by_the_awake_state(value: int, awake: bool):
    line = f'vllm:engine_sleep_state{{engine="0",sleep_state="awake"}} {value}'
    assert replica('vllm:num_requests_running{engine="0"} 0', line).awake is awake


def test_a_le_label_on_a_gauge_makes_no_histogram():
    assert replica('vllm:time_to_first_token_seconds{le="1"} 3', "vllm:num_requests_running 1").ttft_seconds is None


def histogram_lines(counts: str = "1 2 3", total: str | None = "4.5", count: str | None = "3") -> list[str]:
    name = "vllm:time_to_first_token_seconds"
    lines = [f'{name}_bucket{{le="{le}"}} {n}' for le, n in zip(("0.1", "1", "+Inf"), counts.split(), strict=False)]
    lines += [f"{name}_sum {total}"] if total else []
    return lines + ([f"{name}_count {count}"] if count else [])


def test_a_histogram_is_its_buckets_sum_and_count():
    expected = Histogram((0.1, 1.0, float("inf")), (1.0, 2.0, 3.0), 4.5, 3.0)
    assert replica(*histogram_lines()).ttft_seconds == expected
    assert replica(*histogram_lines(count=None)).ttft_seconds == expected
    assert replica(*histogram_lines(counts="1 2")).ttft_seconds == expected  # the +Inf bucket is the count


@pytest.mark.parametrize(
    "lines", [histogram_lines(counts="3 2 1"), histogram_lines(total=None), histogram_lines(total="NaN")]
)
def test_a_histogram_that_contradicts_itself_is_dropped_with_a_warning(lines: list[str]):
    reading = read("vllm:num_requests_running 1", *lines)
    assert reading.replicas[0].ttft_seconds is None
    assert "time_to_first_token_seconds" in reading.warnings[0]


def test_a_falling_sum_is_no_contradiction():
    histogram = replica(*histogram_lines(total="-0.2")).ttft_seconds
    assert histogram is not None
    assert histogram.sum == -0.2


def test_hostile_label_values_are_bounded():
    reading = read(
        *(f'vllm:num_requests_running{{engine="{i}"}} -1' for i in range(50)),
        *(f'vllm:num_requests_waiting{{engine="{i}"}} 1' for i in range(MAX_REPLICAS + 5)),
        *(f'vllm:request_success_total{{engine="0",finished_reason="r{i}"}} 1' for i in range(100)),
    )
    assert len(reading.replicas) == MAX_REPLICAS
    assert len(reading.warnings) <= MAX_WARNINGS
    assert len(reading.replicas[0].request_success_total) == 32


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (["http_requests_total 3", "process_cpu_seconds_total 1"], "--disable-log-stats"),
        (["process_cpu_seconds_total 1"], "wrong port"),
        (["pinchpoint_simulated 1"], "pinchpoint itself"),
        ([""], "empty"),
    ],
)
def test_an_exposition_without_vllm_says_why_that_may_be(lines: list[str], cause: str):
    with pytest.raises(SourceError, match=cause) as caught:
        read(*lines)
    assert caught.value.reason is Reason.METRICS_MISSING


def test_the_operators_facts_stay_where_the_engine_is_silent():
    target = EngineTarget(
        engine="chat", url="", facts=EngineFacts(model="mine", max_num_seqs=8, gpu_memory_utilization=0.5)
    )
    facts = read('vllm:num_requests_running{model_name="served"} 1', target=target).facts
    assert (facts.model, facts.max_num_seqs, facts.gpu_memory_utilization) == ("mine", 8, 0.5)


def scraped(tokens: float, started: str = "") -> EngineReading:
    return EngineReading(engine="chat", at=0, replicas=(ReplicaReading(generation_tokens_total=tokens),), epoch=started)


def test_a_counter_that_falls_begins_an_epoch():
    epochs = EpochTracker()
    assert [epochs.stamp(scraped(t)).epoch for t in (5, 9, 9, 2, 3)] == ["#0", "#0", "#0", "#1", "#1"]


def test_a_new_start_time_begins_an_epoch_even_when_counters_have_overtaken():
    epochs = EpochTracker()
    assert epochs.stamp(scraped(5, "100.00")).epoch != epochs.stamp(scraped(9, "200.00")).epoch


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_the_epoch_changes_exactly_where_a_counter_falls(tokens: list[int]):
    epochs = EpochTracker()
    stamped = [epochs.stamp(scraped(t)).epoch for t in tokens]
    changes = [a != b for a, b in pairwise(stamped)]
    assert changes == [b < a for a, b in pairwise(tokens)]


def test_values_that_can_not_be_added_up_are_unknown():
    twice = [
        f'vllm:{name}{{pod="{pod}"}} 1e308'
        for name in ("num_requests_running", "generation_tokens_total")
        for pod in "ab"
    ]
    buckets = [
        f'vllm:time_to_first_token_seconds_{part}{{pod="{pod}"}} 1e308' for part in ("sum", "count") for pod in "ab"
    ]
    assert replica(*twice, *buckets, 'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 1') == ReplicaReading()


def test_an_engine_that_names_its_replicas_anew_at_each_scrape_does_not_fill_the_memory():
    tracker = EpochTracker()
    tracemalloc.start()
    for scrape in range(170):
        tracker.stamp(read(*(f'vllm:generation_tokens_total{{engine="{scrape}-{rank}"}} 1' for rank in range(50))))
        if scrape == 85:  # what is kept is full by now
            before, _ = tracemalloc.get_traced_memory()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 500_000, f"{(after - before) / 1e6:.1f} MB more"
