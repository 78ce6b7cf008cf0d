"""The exposition is what a real server's is: same families, labels, buckets; and it says what the engine did."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from pinchpoint.simulator import play, render, world_of

REAL = Path(__file__).parents[2] / "data" / "vllm-real" / "c-moderate" / "020.prom"
SIZES = ("prompt_tokens", "generation_tokens", "max_num_generation_tokens", "params_max_tokens", "kv_computed_tokens")


def samples(text):
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.fixture(scope="module")
def busy():
    (engine,) = play(world_of("memory_wall", seed=1), 40).engines
    return engine


def value(text, name, **labels):
    found = [v for (n, pairs), v in samples(text).items() if n == name and labels.items() <= dict(pairs).items()]
    assert len(found) == 1, (name, labels, found)
    return found[0]


def vllm_shape(text):
    """Family name, type, label names and ``le`` values of everything under vllm:, less what depends on the model."""
    shape = {}
    for family in text_string_to_metric_families(text):
        if not family.name.startswith("vllm:") or family.name == "vllm:cache_config_info":
            continue
        for sample in family.samples:
            if family.name.endswith(SIZES) and "le" in sample.labels:
                continue  # these buckets end at max_model_len
            labels = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "model_name"))
            shape[sample.name, labels] = family.type
    return shape


def test_every_family_label_and_bucket_is_that_of_a_real_server(busy):
    assert vllm_shape(render([busy])) == vllm_shape(REAL.read_text())


def test_gauges_and_counters_say_what_the_engine_did(busy):
    text = render([busy])
    assert value(text, "vllm:num_requests_running") == busy.running
    assert value(text, "vllm:num_requests_waiting_by_reason", reason="capacity") == busy.waiting > 0
    assert value(text, "vllm:num_requests_waiting_by_reason", reason="deferred") == 0
    assert value(text, "vllm:num_preemptions_total") == busy.ledger.preemptions > 0
    assert value(text, "vllm:generation_tokens_total") == busy.ledger.generation_tokens
    assert value(text, "vllm:engine_sleep_state", sleep_state="awake") == 1


def test_kv_usage_is_one_minus_free_over_all_but_the_null_block(busy):
    pool = busy.batcher.pool
    assert value(render([busy]), "vllm:kv_cache_usage_perc") == pytest.approx(1 - pool.free / (pool.total - 1))


def test_prompt_tokens_are_the_sum_of_their_sources(busy):
    text = render([busy])
    sources = ("local_compute", "local_cache_hit", "external_kv_transfer")
    by_source = [value(text, "vllm:prompt_tokens_by_source_total", source=source) for source in sources]
    assert sum(by_source) == value(text, "vllm:prompt_tokens_total")
    assert by_source[1] == value(text, "vllm:prompt_tokens_cached_total") > 0


def test_histograms_are_cumulative_and_complete(busy):
    for family in text_string_to_metric_families(render([busy])):
        if family.type == "histogram":
            buckets = [s.value for s in family.samples if s.name.endswith("_bucket")]
            count = next(s.value for s in family.samples if s.name.endswith("_count"))
            assert buckets == sorted(buckets), family.name
            assert buckets[-1] == count, family.name


def test_capacity_and_start_time_are_told(busy):
    text = render([busy], unix_epoch=1.8e9)
    info = next(f for f in text_string_to_metric_families(text) if f.name == "vllm:cache_config_info").samples[0].labels
    assert int(info["kv_cache_size_tokens"]) == int(info["num_gpu_blocks"]) * int(info["block_size"])
    assert value(text, "process_start_time_seconds") == 1.8e9
    assert value(text, "vllm:num_preemptions_created") == 1.8e9


def test_cores_of_one_server_differ_by_the_label_engine_and_share_their_process():
    service = play(world_of("uneven_replicas", seed=1), 30)
    text = render(service.engines)
    for core, engine in enumerate(service.engines):
        assert value(text, "vllm:num_requests_running", engine=str(core)) == engine.running
        assert value(text, "vllm:generation_tokens_total", engine=str(core)) == engine.ledger.generation_tokens
        assert value(text, "vllm:time_to_first_token_seconds_count", engine=str(core)) == engine.ledger.ttft.count
    assert value(text, "process_start_time_seconds") == 0.0
    names = [line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))
