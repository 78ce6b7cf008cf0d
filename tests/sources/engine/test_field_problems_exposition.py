"""Symptoms from the field, of what an exposition says, in which spelling, and of the KV cache's size."""

from dataclasses import replace
from pathlib import Path

import pytest

from pinchpoint.snapshot import EngineFacts, EngineReading, EngineTarget, Reason, ReplicaReading
from pinchpoint.sources.engine import reading_from_body
from pinchpoint.sources.http import SourceError
from tests.sources.engine.sequences import gauge, state

DATA = Path("tests/data/engine-metrics")
TARGET = EngineTarget(engine="chat", url="http://127.0.0.1:8000")


def read(body: str | bytes, content_type: str | None = None, **facts) -> EngineReading:
    text = body if isinstance(body, bytes) else body.encode()
    return reading_from_body(replace(TARGET, facts=EngineFacts(**facts)), text, content_type, 1.0)


def sized(labels: str, **facts) -> EngineReading:
    return read(f'{state(1, 0, 0.5, 1)}vllm:cache_config_info{{engine="0",{labels}}} 1.0\n', **facts)


def capacity(labels: str, **facts) -> float | None:
    return sized(labels, **facts).replicas[0].kv_cache_capacity_tokens


# https://github.com/vllm-project/vllm/issues/16560 , https://github.com/vllm-project/vllm/issues/15719
@pytest.mark.parametrize("blocks", ["None", "auto", "", "-1", "1e3", "nan", "9" * 400])
def test_a_number_of_blocks_that_is_none_leaves_the_capacity_unknown(blocks: str):
    assert capacity(f'num_gpu_blocks="{blocks}",block_size="16"') is None


def test_blocks_that_were_set_by_hand_count_where_the_engine_has_not_counted_its_own():
    assert capacity('num_gpu_blocks="None",num_gpu_blocks_override="100",block_size="16"') == 1600
    assert capacity('num_gpu_blocks="90",num_gpu_blocks_override="100",block_size="16"') == 1440


# https://github.com/vllm-project/vllm/issues/42966
def test_the_stale_block_size_of_a_hybrid_model_makes_no_capacity():
    assert capacity('block_size="16",num_gpu_blocks="1000",mamba_block_size="784"') is None


# https://github.com/vllm-project/vllm/issues/51163
def test_the_printed_size_goes_before_blocks_times_a_block_size_that_is_not_the_operators():
    labels = 'block_size="4",num_gpu_blocks="1000",effective_attention_block_size="256"'
    assert capacity(f'{labels},kv_cache_size_tokens="256000"') == 256_000
    assert capacity(labels) is None, "the product of this block size is no number of tokens"


# https://github.com/vllm-project/vllm/issues/40691 , https://github.com/vllm-project/vllm/pull/40384
def test_the_requests_that_fit_times_their_length_are_a_hybrids_capacity():
    labels = 'block_size="16",num_gpu_blocks="1000",mamba_block_size="784",kv_cache_max_concurrency="54.53"'
    assert capacity(labels, max_model_len=8192) == int(54.53 * 8192)
    assert capacity(labels) is None, "the length is not told"


# https://github.com/vllm-project/vllm/issues/28228
def test_the_capacity_of_a_hybrid_model_is_said_to_be_an_estimate():
    hybrid = 'mamba_block_size="784",block_size="16",num_gpu_blocks="9",kv_cache_size_tokens="5120"'
    assert ["estimate over caches" in words for words in sized(hybrid).warnings] == [True]
    assert sized('mamba_block_size="None",block_size="16",num_gpu_blocks="9"').warnings == ()


@pytest.mark.parametrize("labels", ['num_gpu_blocks="0",block_size="16"', 'is_attention_free="True",block_size="16"'])
def test_a_pooling_model_has_no_kv_cache_whose_usage_could_be_0(labels: str):
    reading = sized(labels)
    assert reading.replicas[0].kv_cache_usage_ratio is None
    assert reading.replicas[0].kv_cache_capacity_tokens is None
    assert reading.unavailable["kv_cache_usage_ratio"] is Reason.NOT_SUPPORTED


PYTHON = 'python_gc_objects_collected_total{generation="0"} 9.0\nprocess_cpu_seconds_total 1.0\n'


# https://github.com/vllm-project/vllm/issues/16348 and 7782, 8612, 2850, 40605, 26762 there
@pytest.mark.parametrize(
    ("body", "causes"),
    [
        (PYTHON, ("wrong port", "--disable-log-stats", "multiprocess frontend")),
        (PYTHON + 'http_requests_total{handler="/v1/chat/completions",status="2xx"} 3.0\n', ("--disable-log-stats",)),
        ("", ("empty", "just started")),
    ],
)
def test_an_exposition_without_the_engines_families_names_the_causes(body: str, causes: tuple[str, ...]):
    with pytest.raises(SourceError) as caught:
        read(body)
    assert caught.value.reason is Reason.METRICS_MISSING
    assert [cause for cause in causes if cause not in caught.value.detail] == []


# https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/2950
def test_each_data_parallel_rank_is_a_replica_of_its_own_and_none_is_the_last_sample():
    reading = read("".join(state(10 * n, n, n / 10, 100 * n, engine=str(n)) for n in (3, 1, 0, 2)))
    assert [(r.replica, r.requests_running, r.kv_cache_usage_ratio) for r in reading.replicas] == [
        ("0", 0, 0.0), ("1", 10, 0.1), ("2", 20, 0.2), ("3", 30, 0.3),
    ]  # fmt: skip


# https://github.com/vllm-project/vllm-ascend/issues/10049
def test_what_the_metrics_say_goes_before_what_the_log_said():
    labels = 'block_size="16",num_gpu_blocks="100"'
    assert capacity(labels, kv_cache_capacity_tokens=777.0) == 1600
    assert capacity('block_size="16"', kv_cache_capacity_tokens=777.0) == 777
    ranks = read("".join(state(1, 0, 0.1, 1, engine=str(n)) for n in range(4)), kv_cache_capacity_tokens=777.0)
    assert [r.kv_cache_capacity_tokens for r in ranks.replicas] == [777] * 4


RUST = DATA / "vllm-0.33-rust-frontend-openmetrics-synthetic.om.txt"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


# https://github.com/gpustack/gpustack/issues/6215
@pytest.mark.parametrize("content_type", [OPENMETRICS, "text/plain; version=0.0.4", "application/json", None])
def test_the_rust_frontends_openmetrics_is_read_whatever_it_is_called(content_type: str | None):
    (replica,) = read(RUST.read_bytes(), content_type).replicas
    assert replica.prompt_tokens_total is not None
    assert replica.ttft_seconds is not None
    assert replica.kv_cache_capacity_tokens is None, "it prints no cache configuration"


def test_an_openmetrics_body_that_was_cut_is_refused():
    body = RUST.read_bytes()
    with pytest.raises(SourceError) as caught:
        read(body[: body.rindex(b"\n# EOF") + 1], OPENMETRICS)
    assert caught.value.reason is Reason.TRUNCATED


# https://github.com/kubernetes-sigs/inference-perf/issues/600 , https://github.com/sgl-project/sglang/pull/15076 (and
# 12970, 36428 there), https://github.com/ai-dynamo/dynamo/pull/5701
@pytest.mark.parametrize("file", ["vllm-0.33.0-v1.prom", "sglang-0.5.23.prom", "lmdeploy-main-2026-08-21.prom"])
def test_an_underscore_in_place_of_the_colon_changes_nothing(file: str):
    body = (DATA / file).read_text()
    spelt = body.replace("vllm:", "vllm_").replace("sglang:", "sglang_").replace("lmdeploy:", "lmdeploy_")
    assert spelt != body
    assert read(spelt) == read(body)


# https://github.com/vllm-project/production-stack/issues/617
def test_new_names_an_engine_label_and_created_lines_read_like_the_old_names():
    old = 'vllm:num_requests_running{model_name="m"} 4.0\nvllm:gpu_cache_usage_perc{model_name="m"} 0.25\n'
    old += 'vllm:gpu_prefix_cache_hits_total{model_name="m"} 5.0\nvllm:prompt_tokens_total{model_name="m"} 9.0\n'
    new = gauge("num_requests_running", 4.0) + gauge("kv_cache_usage_perc", 0.25)
    new += gauge("prefix_cache_hits_total", 5.0) + gauge("prefix_cache_hits_created", 1.7e9)
    new += gauge("prompt_tokens_total", 9.0) + gauge("prompt_tokens_created", 1.7e9)
    assert read(old).replicas == read(new).replicas
    assert read(new).replicas == (
        ReplicaReading(
            model="m",
            requests_running=4,
            kv_cache_usage_ratio=0.25,
            prefix_cache_hits_total=5,
            prompt_tokens_total=9,
        ),
    )


# https://github.com/vllm-project/production-stack/issues/318
@pytest.mark.parametrize(
    "body",
    [
        'vllm:current_qps{server="http://10.0.0.1:8000"} 3.0\n',
        'vllm:num_requests_running{server="http://10.0.0.1:8000"} 1.0\n',
    ],
)
def test_a_routers_metrics_are_not_taken_for_an_engines(body: str):
    with pytest.raises(SourceError, match="router") as caught:
        read(body)
    assert caught.value.reason is Reason.METRICS_MISSING


def adapters(*rows: tuple[float, str, str]) -> EngineReading:
    lines = (
        f'max_lora="4",running_lora_adapters="{running}",waiting_lora_adapters="{waiting}"}} {at}\n'
        for at, running, waiting in rows
    )
    return read(state(1, 0, 0.1, 1) + "".join(f"vllm:lora_requests_info{{{line}" for line in lines))


# https://github.com/kubernetes-sigs/gateway-api-inference-extension/issues/354 ,
# https://github.com/vllm-project/vllm/pull/54830
def test_of_the_rows_about_lora_adapters_only_the_newest_speaks():
    frontend = adapters((1.7e9 + 5, "old", ""), (1.7e9 + 9, "sql,chat", "sql"), (1.7e9, "", "gone")).frontend
    assert frontend.lora_adapters == {"running": 2, "waiting": 1}
    assert (frontend.lora_running, frontend.lora_waiting) == (("chat", "sql"), ("sql",))
    assert frontend.lora_adapters_max == 4


def test_times_that_several_servers_added_up_tell_no_newest_row():
    reading = adapters((3.4e9, "a", ""), (1.7e9 + 9, "b", ""))
    assert reading.frontend.lora_adapters == {}
    assert reading.frontend.lora_adapters_max == 4
    assert "lora_requests_info" in reading.warnings[0]


def test_a_thousand_adapters_are_counted_and_a_few_are_named():
    names = ",".join(f"adapter-{n:04d}" for n in range(1000))
    frontend = adapters((1.7e9, names, "")).frontend
    assert frontend.lora_adapters == {"running": 1000, "waiting": 0}
    assert len(frontend.lora_running) == 32
