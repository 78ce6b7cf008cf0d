"""Each other engine's exposition in our words: which fields it fills, from which name, and how ranks are folded."""

import math
import re
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Histogram, Reason, ReplicaReading
from pinchpoint.sources.engine import KINDS, reading_from_body
from pinchpoint.sources.engine.kinds.dynamo import BEFORE_FIRST_TOKEN
from pinchpoint.sources.engine.kinds.kind import FIELDS, JUDGED_BY
from pinchpoint.sources.engine.kinds.tgi import BUDGET

DATA = Path("tests/data/engine-metrics")


def read(body: bytes | str, kind: str = "") -> EngineReading:
    target = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=EngineFacts(kind=kind))
    return reading_from_body(target, body.encode() if isinstance(body, str) else body, None, 1.0)


def only(body: bytes | str) -> ReplicaReading:
    (replica,) = read(body).replicas
    return replica


def values(replica: ReplicaReading) -> dict[str, object]:
    """What is known, a histogram by its count and sum."""
    found = {name: getattr(replica, name) for name in FIELDS}
    return {
        name: (value.count, value.sum) if isinstance(value, Histogram) else value
        for name, value in found.items()
        if value not in (None, {})
    }


def in_text(file: str, name: str) -> float:
    """The only value of a sample in a file, by a regular expression."""
    (value,) = re.findall(rf"^{name}(?:\{{.*\}})? (\S+)$", (DATA / file).read_text(), re.MULTILINE)
    return float(value)


def pair(file: str, name: str) -> tuple[float, float]:
    return in_text(file, f"{name}_count"), in_text(file, f"{name}_sum")


def test_sglang_is_read_as_far_as_it_speaks():
    file = "sglang-0.5.23.prom"
    assert values(only((DATA / file).read_bytes())) == {
        "requests_running": 37,
        "requests_waiting": 9,
        "requests_waiting_by_reason": {"capacity": 9, "deferred": 0},
        "kv_cache_usage_ratio": 0.87,
        "kv_cache_capacity_tokens": 400246,
        "prompt_tokens_total": 812890,
        "generation_tokens_total": 755757,
        "prefix_cache_queries_total": 812890,
        "queue_seconds": pair(file, "sglang:queue_time_seconds"),
        "ttft_seconds": pair(file, "sglang:time_to_first_token_seconds"),
        "inter_token_seconds": pair(file, "sglang:inter_token_latency_seconds"),
        "e2e_seconds": pair(file, "sglang:e2e_request_latency_seconds"),
    }
    facts = read((DATA / file).read_bytes()).facts
    assert (facts.kind, facts.model, facts.max_model_len, facts.block_size) == ("sglang", "Qwen/Qwen3-8B", 40960, 1)
    assert facts.origins["max_model_len"] == "metrics"


def test_lmdeploy_is_read_as_far_as_it_speaks():
    file, counts = "lmdeploy-main-2026-08-21.prom", 1234
    known = values(only((DATA / file).read_bytes()))
    assert known["requests_running"] == 11
    assert known["requests_waiting"] == 2 + 3  # in the engine, and in the API server
    assert known["kv_cache_usage_ratio"] == 0.37
    assert known["generation_tokens_total"] == known["prompt_tokens_total"] == counts
    assert known["prefix_cache_hits_total"] == counts
    assert known["inter_token_seconds"] == pair(file, "lmdeploy:iter_token_latency")
    assert known["tpot_seconds"] == pair(file, "lmdeploy:time_per_output_token_seconds")
    assert known["iteration_tokens"] == pair(file, "lmdeploy:iteration_tokens_total")
    assert "kv_cache_capacity_tokens" not in known


def test_tgi_is_read_as_far_as_it_speaks():
    file = "tgi-3.x-synthetic.prom"
    reading = read((DATA / file).read_bytes())
    assert values(reading.replicas[0]) == {
        "requests_running": 8,
        "requests_waiting": 5,
        "kv_cache_usage_ratio": 20480 / 65536,
        "kv_cache_capacity_tokens": 65536,
        "steps_total": 250 + 18000,
        "queue_seconds": pair(file, "tgi_request_queue_duration"),
        "inference_seconds": pair(file, "tgi_request_inference_duration"),
        "e2e_seconds": pair(file, "tgi_request_duration"),
    }
    assert reading.warnings == (BUDGET,)


def test_tgi_counts_tokens_by_the_sums_of_its_histograms():
    body = "tgi_request_generated_tokens_sum 900\ntgi_request_input_length_sum 7000\n"
    assert (only(body).generation_tokens_total, only(body).prompt_tokens_total) == (900, 7000)


def test_a_garbled_method_label_of_ibms_fork_loses_no_step():
    name = "tgi_batch_inference_count"
    assert only(f"{name}{{method=\"{{'method': 'prefill'}}\"}} 3\n{name}{{method=\"decode\"}} 4\n").steps_total == 7


def test_llama_cpp_is_read_as_far_as_it_speaks():
    assert values(only((DATA / "llamacpp-master-2026-synthetic.prom").read_bytes())) == {
        "requests_running": 1,
        "requests_waiting": 0,
        "prompt_tokens_total": 10000,
        "generation_tokens_total": 3000,
        "steps_total": 2100,
    }


@pytest.mark.parametrize("value", ["nan", "-nan"])
def test_what_llama_cpp_has_not_measured_is_unknown(value: str):
    assert only(f"llamacpp:kv_cache_usage_ratio {value}\nllamacpp:requests_processing 0\n").kv_cache_usage_ratio is None


def ranks(name: str, *rows: tuple[str, float]) -> str:
    return "".join(f"sglang:{name}{{{labels}}} {value}\n" for labels, value in rows)


def test_tensor_parallel_ranks_are_copies_and_data_parallel_ranks_are_replicas():
    body = ranks(
        "num_running_reqs",
        ('dp_rank="0",tp_rank="0"', 3),
        ('dp_rank="0",tp_rank="1"', 4),
        ('dp_rank="1",tp_rank="2"', 5),
        ('dp_rank="1",tp_rank="3"', 5),
    )
    assert [(r.replica, r.requests_running) for r in read(body).replicas] == [("0", 4), ("1", 5)]


def test_requests_counted_before_a_rank_is_chosen_are_the_servers_as_a_whole():
    body = (
        ranks("num_running_reqs", ('dp_rank="0"', 3), ('dp_rank="1"', 5))
        + 'sglang:generation_tokens_total{is_streaming="True",model_name="m"} 100\n'
        + 'sglang:generation_tokens_total{is_streaming="False",model_name="m"} 11\n'
    )
    replicas = {r.replica: r for r in read(body).replicas}
    assert {name: r.generation_tokens_total for name, r in replicas.items()} == {"0": None, "1": None, "all": 111}
    assert {r.model for r in replicas.values()} == {"m"}


def test_one_rank_and_its_server_are_one_replica():
    body = ranks("num_running_reqs", ('dp_rank="0"', 3)) + "sglang:generation_tokens_total 100\n"
    assert [(r.replica, r.requests_running, r.generation_tokens_total) for r in read(body).replicas] == [("0", 3, 100)]


def test_parts_by_priority_are_not_added_to_their_total():
    body = ranks("num_queue_reqs", ('priority=""', 9), ('priority="1"', 4), ('priority="2"', 5))
    assert only(body).requests_waiting == 9
    assert only(ranks("num_queue_reqs", ('priority="1"', 4), ('priority="2"', 5))).requests_waiting == 9


def test_a_gauge_that_a_dead_process_left_behind_is_not_added():
    body = ranks("num_running_reqs", ('pid="1"', 3), ('pid="2"', 2))
    assert only(body).requests_running == 3


def test_sglangs_oldest_names_are_read():
    body = 'sglang:num_running_reqs{name="m"} 1\nsglang:num_queue_req{name="m"} 2\nsglang:token_usage{name="m"} 0.5\n'
    replica = only(body)
    assert (replica.model, replica.requests_running, replica.requests_waiting) == ("m", 1, 2)


def test_underscored_names_of_openmetrics_are_sglangs():
    assert only("sglang_num_running_reqs 4\nsglang_prompt_tokens_total 7\n").prompt_tokens_total == 7


def test_retractions_are_preemptions():
    assert only("sglang:num_retracted_requests_total 6\nsglang:num_retracted_reqs 1\n").preemptions_total == 6


TRTLLM_NOW = """\
trtllm_num_requests_running{model_name="m"} 4
trtllm_num_requests_waiting{model_name="m"} 2
trtllm_kv_cache_utilization{model_name="m"} 0.5
trtllm_kv_cache_max_blocks{model_name="m"} 100
trtllm_kv_cache_tokens_per_block{model_name="m"} 32
trtllm_kv_cache_reused_blocks_total{model_name="m"} 10
trtllm_kv_cache_missed_blocks_total{model_name="m"} 30
trtllm_prompt_tokens_total{model_name="m"} 900
trtllm_generation_tokens_total{model_name="m"} 700
trtllm_max_num_active_requests{model_name="m"} 256
trtllm_max_num_tokens_runtime{model_name="m"} 8192
trtllm_time_to_first_token_seconds_bucket{model_name="m",le="+Inf"} 3
trtllm_time_to_first_token_seconds_sum{model_name="m"} 0.6
trtllm_time_to_first_token_seconds_count{model_name="m"} 3
"""


@pytest.mark.parametrize("prefix", ["trtllm_", "trtllm:"])
def test_tensorrt_llm_is_read_as_far_as_it_speaks(prefix: str):
    reading = read(TRTLLM_NOW.replace("trtllm_", prefix))
    assert values(reading.replicas[0]) == {
        "requests_running": 4,
        "requests_waiting": 2,
        "kv_cache_usage_ratio": 0.5,
        "kv_cache_capacity_tokens": 3200,
        "prefix_cache_hits_total": 320,
        "prefix_cache_queries_total": 1280,
        "prompt_tokens_total": 900,
        "generation_tokens_total": 700,
        "ttft_seconds": (3, 0.6),
    }
    facts = reading.facts
    assert (facts.max_num_seqs, facts.max_num_batched_tokens, facts.block_size) == (256, 8192, 32)
    assert reading.tokens_at_end


def histogram(name: str) -> str:
    return (
        f'{name}_bucket{{model_name="undefined",le="+Inf"}} 3\n{name}_sum{{model_name="undefined"}} 6\n{name}_count 3\n'
    )


def test_tensorrt_llm_of_old_had_no_prefix_and_no_model():
    names = ("e2e_request_latency_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds")
    body = "".join(map(histogram, (*names, "request_queue_time_seconds")))
    reading = read(body + 'request_success_total{finished_reason="stop"} 3\n')
    assert reading.facts.kind == "trtllm"
    assert values(reading.replicas[0]) == {
        "e2e_seconds": (3, 6),
        "ttft_seconds": (3, 6),
        "tpot_seconds": (3, 6),
        "queue_seconds": (3, 6),
        "request_success_total": {"stop": 3},
    }
    assert reading.facts.model is None


def triton(model: str, family: str, key: str, value: str, number: float) -> str:
    return f'nv_trt_llm_{family}{{model="{model}",version="1",{key}="{value}"}} {number}\n'


def backend(model: str = "tensorrt_llm") -> str:
    requests = {"active": 12, "scheduled": 10, "waiting": 3, "max": 64}
    blocks = {"used": 30, "max": 120, "free": 90, "tokens_per": 64, "fraction": 0.25}
    return "".join(
        [triton(model, "request_metrics", "request_type", kind, n) for kind, n in requests.items()]
        + [triton(model, "kv_cache_block_metrics", "kv_cache_block_type", kind, n) for kind, n in blocks.items()]
        + [triton(model, "general_metrics", "general_type", "iteration_counter", 5000)]
    )


def test_tritons_tensorrt_llm_backend_tells_blocks_requests_and_tokens():
    labels = 'model="tensorrt_llm",version="1"'
    reading = read(
        backend()
        + f'nv_llm_input_token_len_sum{{{labels},response_metric_type="total_input_tokens"}} 900\n'
        + f'nv_llm_output_token_len_sum{{{labels},response_metric_type="total_output_tokens"}} 80\n'
        + "nv_gpu_utilization nan\n"
    )
    assert values(reading.replicas[0]) == {
        "requests_running": 12,
        "requests_waiting": 3,
        "kv_cache_usage_ratio": 0.25,
        "kv_cache_capacity_tokens": 7680,
        "steps_total": 5000,
        "prompt_tokens_total": 900,
        "generation_tokens_total": 80,
    }
    assert (reading.facts.kind, reading.facts.model, reading.facts.max_num_seqs) == ("triton", "tensorrt_llm", 64)


def served(model: str, requests: float) -> str:
    return (
        f'nv_inference_request_success{{model="{model}",version="1"}} {requests}\n'
        f'nv_inference_request_duration_us{{model="{model}",version="1"}} {requests * 2e6}\n'
        f'nv_inference_queue_duration_us{{model="{model}",version="1"}} {requests * 5e5}\n'
    )


def test_an_ensemble_does_not_count_a_request_twice():
    every = "".join(served(model, 10) for model in ("ensemble", "preprocessing", "tensorrt_llm", "postprocessing"))
    for body in (backend() + every, every):
        replica = only(body)
        assert replica.e2e_seconds == Histogram((math.inf,), (10.0,), 20.0, 10.0)
        assert replica.queue_seconds is not None
        assert replica.queue_seconds.mean == pytest.approx(0.5)
        assert replica.queue_seconds.quantile(0.95) is None  # a mean is all there is


def test_tritons_first_response_is_in_milliseconds():
    name, labels = "nv_inference_first_response_histogram_ms", 'model="m",version="1"'
    body = f'{name}_bucket{{{labels},le="500"}} 2\n{name}_bucket{{{labels},le="+Inf"}} 3\n{name}_sum{{{labels}}} 1200\n'
    assert only(body + f"{name}_count{{{labels}}} 3\n").ttft_seconds == Histogram((0.5, math.inf), (2.0, 3.0), 1.2, 3.0)


def test_tritons_vllm_backend_is_read_by_vllms_names_and_what_it_leaves_out_is_not_exposed():
    labels = 'model="opt",version="1"'
    reading = read(
        f"nv_inference_count{{{labels}}} 3\nvllm:prompt_tokens_total{{{labels}}} 30\n"
        f"vllm:generation_tokens_total{{{labels}}} 40\n"
    )
    assert (reading.facts.kind, reading.facts.model) == ("triton", "opt")
    assert values(reading.replicas[0]) == {"prompt_tokens_total": 30, "generation_tokens_total": 40}
    assert reading.unavailable["kv_cache_usage_ratio"] is Reason.NOT_EXPOSED
    assert "generation_tokens_total" not in reading.unavailable


DYNAMO = """\
dynamo_frontend_inflight_requests{model="m"} 12
dynamo_frontend_queued_requests{model="m"} 3
dynamo_frontend_output_tokens_total{model="m"} 500
dynamo_frontend_input_sequence_tokens_sum{model="m"} 9000
dynamo_frontend_output_sequence_tokens_sum{model="m"} 500
dynamo_frontend_time_to_first_token_seconds_count{model="m"} 7
dynamo_frontend_model_context_length{model="m"} 40960
dynamo_frontend_model_total_kv_blocks{model="m"} 1000
dynamo_frontend_model_kv_cache_block_size{model="m"} 16
dynamo_frontend_model_max_num_seqs{model="m"} 256
"""


@pytest.mark.parametrize("prefix", ["dynamo_frontend_", "my_own_"])
def test_dynamos_frontend_tells_what_its_clients_see_under_any_prefix(prefix: str):
    reading = read(DYNAMO.replace("dynamo_frontend_", prefix))
    assert values(reading.replicas[0]) == {
        "requests_running": 9,
        "requests_waiting": 3,
        "kv_cache_capacity_tokens": 16000,
        "prompt_tokens_total": 9000,
        "prefix_cache_queries_total": 9000,
        "generation_tokens_total": 500,
    }
    assert reading.warnings == (BEFORE_FIRST_TOKEN,)
    assert (reading.facts.kind, reading.facts.max_num_seqs, reading.facts.max_model_len) == ("dynamo", 256, 40960)


def test_stages_before_the_first_token_are_dynamos_queue_of_today():
    stages = "".join(f'dynamo_frontend_stage_requests{{stage="{s}"}} 2\n' for s in ("preprocess", "route", "dispatch"))
    replica = only("dynamo_frontend_inflight_requests 10\n" + stages)
    assert (replica.requests_running, replica.requests_waiting) == (4, 6)


@pytest.mark.parametrize("kind", ["", "dynamo", "vllm"])
def test_dynamos_worker_is_its_engine_with_labels_put_in(kind: str):
    labels = 'dynamo_namespace="d",dynamo_component="backend",dynamo_endpoint="generate",model="m",model_name="m"'
    body = f"vllm:num_requests_running{{{labels}}} 4\ndynamo_component_requests_total{{{labels}}} 9\n"
    reading = read(body, kind)
    assert (reading.facts.kind, reading.facts.model) == ("vllm", "m")
    assert reading.replicas[0].requests_running == 4


def test_a_worker_that_has_had_no_request_waits_for_one():
    reading = read("dynamo_component_uptime_seconds 5\n")
    assert reading.facts.kind == "dynamo"
    assert values(reading.replicas[0]) == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_says_no_field_that_a_reading_does_not_have(kind: str):
    assert KINDS[kind].says <= FIELDS
    assert KINDS[kind].says | KINDS[kind].not_exposed == FIELDS


@pytest.mark.parametrize(
    "file", ["sglang-0.5.23", "lmdeploy-main-2026-08-21", "tgi-3.x-synthetic", "llamacpp-master-2026-synthetic"]
)
def test_what_a_kind_never_says_is_absent_with_that_reason(file: str):
    reading = read((DATA / f"{file}.prom").read_bytes())
    never = {name for name, why in reading.unavailable.items() if why is Reason.NOT_EXPOSED}
    assert never == JUDGED_BY - KINDS[reading.facts.kind].says
    assert all(values(replica).keys().isdisjoint(never) for replica in reading.replicas)
