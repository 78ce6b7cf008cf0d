"""What people saw of the other engines in the field, each with the report it comes from, and what is made of it."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from pydantic import ValidationError

from pinchpoint.diagnosis import Bottleneck, Diagnosis, Thresholds, diagnose
from pinchpoint.diagnosis.load import load_of
from pinchpoint.snapshot import (
    Absence,
    EngineFacts,
    EngineReading,
    EngineTarget,
    HttpAccess,
    Reason,
    ReplicaReading,
    Snapshot,
    Window,
)
from pinchpoint.sources.engine import EngineScraper, EngineSettings, EngineSourceSettings, EpochTracker
from pinchpoint.sources.engine.reading import reading_from_body
from pinchpoint.sources.http import HttpClient
from tests.fakes.pages import Page, serving

SGLANG = '{engine_type="unified",model_name="m",tp_rank="0",pp_rank="0"}'
TRTLLM = '{engine_type="trtllm",model_name="m"}'
JSON = "application/json"
LLAMA = "llamacpp:requests_processing 1\nllamacpp:requests_deferred 0\nllamacpp:tokens_predicted_total 9\n"


def read(text: str, at: float = 1.0, **facts: object) -> EngineReading:
    target = EngineTarget(engine="chat", url="http://127.0.0.1:8000", facts=EngineFacts(**facts))
    return reading_from_body(target, text.encode(), None, at)


def only(text: str) -> ReplicaReading:
    (replica,) = read(text).replicas
    return replica


def verdicts(body: Callable[[int], str], seconds: int) -> Iterator[tuple[int, Diagnosis]]:
    """The verdict at each second, of the body that is scraped then."""
    window, epochs = Window(300.0), EpochTracker()
    for second in range(seconds):
        reading = epochs.stamp(read(body(second), float(second)))
        window = window.append(Snapshot(at=float(second), engines=(reading,)))
        yield second, diagnose(window, "chat", float(second), Thresholds())


def sglang(running: float, waiting: float, tokens: float) -> str:
    return (
        f"sglang:num_running_reqs{SGLANG} {running}\n"
        f"sglang:num_queue_reqs{SGLANG} {waiting}\n"
        f'sglang:generation_tokens_total{{is_streaming="True",model_name="m"}} {tokens}\n'
        f"sglang:token_usage{SGLANG} 0.2\nsglang:gen_throughput{SGLANG} 1843.2\n"
    )


async def scraped(url: str, settings: EngineSourceSettings | None = None, **target: object) -> EngineReading | Absence:
    async with HttpClient() as client:
        return await EngineScraper(EngineTarget(engine="chat", url=url, **target), client, settings).scrape(lambda: 0.0)


# https://github.com/sgl-project/sglang/pull/26495 https://github.com/sgl-project/sglang/pull/31517
def test_a_running_count_that_outlasts_its_requests_by_half_a_minute_is_no_stall():
    seen = dict(verdicts(lambda t: sglang(3 if t < 40 else 0, 0, 100 * min(t, 10)), 60))
    assert all(verdict.bottleneck is not Bottleneck.STALLED for verdict in seen.values())
    assert seen[59].bottleneck is Bottleneck.IDLE


# https://github.com/sgl-project/sglang/pull/31495
def test_a_prefill_server_runs_what_it_hands_on_for_its_own_count_is_always_0():
    labels = SGLANG.replace("unified", "prefill")
    replica = only(
        f"sglang:num_running_reqs{labels} 0\nsglang:num_prefill_inflight_queue_reqs{labels} 7\n"
        f"sglang:num_queue_reqs{labels} 2\nsglang:num_prefill_bootstrap_queue_reqs{labels} 4\n"
    )
    assert replica.requests_running == 7
    assert replica.requests_waiting == 6
    assert replica.requests_waiting_by_reason == {"capacity": 2, "deferred": 4}


# https://github.com/sgl-project/sglang/issues/6892
def test_one_rank_that_is_shown_for_several_is_said_to_be_one_of_several():
    body = "sglang:num_running_reqs 3\n"
    assert "one data-parallel rank of 4 is shown" in " ".join(read(body, data_parallel_size=4).warnings)
    ranks = "".join(f'sglang:num_running_reqs{{dp_rank="{rank}"}} 3\n' for rank in range(4))
    assert read(ranks, data_parallel_size=4).warnings == ()


# https://github.com/sgl-project/sglang/issues/4244
def test_a_throughput_gauge_that_keeps_its_last_value_makes_no_idle_engine_busy():
    *_, (_, verdict) = verdicts(lambda _: sglang(0, 0, 5000), 30)
    assert verdict.bottleneck is Bottleneck.IDLE
    assert verdict.signals["generation_tokens_per_second"] == 0


# https://github.com/sgl-project/sglang/issues/12459
def test_a_hit_rate_gauge_that_is_0_in_decode_is_not_believed_the_counters_are():
    replica = only(
        f"sglang:cache_hit_rate{SGLANG} 0\nsglang:prompt_tokens_total 1000\nsglang:cached_tokens_total 600\n"
    )
    assert replica.prefix_cache_hit_ratio is None
    assert (replica.prefix_cache_queries_total, replica.prefix_cache_hits_total) == (1000, 600)


# https://github.com/sgl-project/sglang/issues/24140
def test_nothing_runs_while_many_wait_and_no_token_comes_is_a_stall():
    seen = dict(verdicts(lambda t: sglang(0 if t > 5 else 8, 40, 100 * min(t, 5)), 30))
    assert seen[29].bottleneck is Bottleneck.STALLED
    assert seen[15].bottleneck is not Bottleneck.STALLED  # a long prompt may take that long


# https://github.com/sgl-project/sglang/pull/28163
async def test_a_scrape_that_starves_the_server_has_a_deadline_and_is_never_one_of_two():
    async with serving(metrics=Page(sglang(0, 0, 0), seconds=2)) as server, HttpClient() as client:
        scraper = EngineScraper(
            EngineTarget(engine="chat", url=server.url), client, EngineSourceSettings(timeout_seconds=0.2)
        )
        absence = await scraper.scrape(lambda: 0.0)
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.TIMEOUT
        assert not scraper.is_due(1.0)  # it fails, so it is asked less often
    async with serving(metrics=Page(sglang(0, 0, 0), seconds=0.1)) as server, HttpClient() as client:
        scraper = EngineScraper(EngineTarget(engine="chat", url=server.url), client)
        await asyncio.gather(*(scraper.scrape(lambda: 0.0) for _ in range(3)))
        assert server.asked.count("/metrics") == 3
        assert server.most_in_flight == 1
    with pytest.raises(ValidationError):
        EngineSourceSettings(interval_seconds=0.5)


# https://github.com/ggml-org/llama.cpp/issues/23632 https://github.com/ggml-org/llama.cpp/pull/22879
def test_llama_cpp_has_no_kv_ratio_any_more_and_an_old_one_is_read():
    reading = read(LLAMA)
    assert reading.replicas[0].kv_cache_usage_ratio is None
    assert reading.unavailable["kv_cache_capacity_tokens"] is Reason.NOT_EXPOSED
    assert only(LLAMA + "llamacpp:kv_cache_usage_ratio 0.25\n").kv_cache_usage_ratio == 0.25


# https://github.com/ggml-org/llama.cpp/issues/19346
async def test_a_scrape_never_makes_a_router_load_a_model():
    pages = {"props": Page('{"role":"router"}', content_type=JSON), "metrics": Page(LLAMA)}
    async with serving(**pages) as server:
        absence = await scraped(server.url, facts=EngineFacts(kind="llamacpp"))
        assert isinstance(absence, Absence)
        assert "a scrape loads a model" in absence.detail
        assert [path for path in server.asked if path.startswith("/metrics")] == []
        wanted = EngineSettings(
            name="chat", url=server.url, kind="llamacpp", metrics_path="/metrics?model=a", side_effects=True
        ).target()
        async with HttpClient() as client:
            assert isinstance(await EngineScraper(wanted, client).scrape(lambda: 0.0), EngineReading)
        assert "/metrics?model=a" in server.asked
    with pytest.raises(ValidationError, match="side_effects"):
        EngineSettings(name="chat", url="http://127.0.0.1:8080", metrics_path="/metrics?model=a")


# https://github.com/ggml-org/llama.cpp/issues/19346
async def test_a_router_that_asks_which_model_is_recognised_by_that():
    async with serving(metrics=Page('{"error":"model name is missing"}', 400, JSON)) as server:
        absence = await scraped(server.url)
        assert isinstance(absence, Absence)
        assert "llama.cpp's router" in absence.detail
        assert all("model=" not in path for path in server.asked)


# https://github.com/ggml-org/llama.cpp/issues/20227
async def test_a_server_that_sleeps_is_not_woken_by_a_scrape():
    pages = {"props": Page('{"is_sleeping":true}', content_type=JSON), "metrics": Page(LLAMA)}
    async with serving(**pages) as server:
        reading = await scraped(server.url, facts=EngineFacts(kind="llamacpp"))
        assert isinstance(reading, EngineReading)
        assert reading.replicas[0].awake is False
        assert "/metrics" not in server.asked
        window = Window(300.0).append(Snapshot(at=0.0, engines=(reading,)))
        assert diagnose(window, "chat", 0.0, Thresholds()).bottleneck is Bottleneck.SLEEPING


# https://github.com/ggml-org/llama.cpp/issues/29104
async def test_llama_cpp_is_scraped_every_five_seconds_at_most():
    async with serving(metrics=Page(LLAMA)) as server, HttpClient() as client:
        scraper = EngineScraper(
            EngineTarget(engine="chat", url=server.url), client, EngineSourceSettings(interval_seconds=1)
        )
        for second in range(20):
            if scraper.is_due(second):
                await scraper.scrape(lambda now=second: float(now))
        assert server.asked.count("/metrics") == 4


# https://github.com/ggml-org/llama.cpp/pull/28915
async def test_a_key_that_metrics_ask_for_is_said_to_be_missing_and_is_sent_when_given():
    async with serving(metrics=Page(LLAMA, token="sk-1")) as server:
        absence = await scraped(server.url)
        assert isinstance(absence, Absence)
        assert absence.reason is Reason.UNAUTHORIZED
        assert "bearer_token_file" in absence.detail
        access = HttpAccess(bearer_token="sk-1")
        assert isinstance(await scraped(server.url, access=access), EngineReading)


# https://github.com/vllm-project/aibrix/issues/2004
async def test_json_at_metrics_leads_to_tensorrt_llms_other_path_and_it_is_remembered():
    pages = {
        "metrics": Page("[]", content_type=JSON),
        "prometheus__metrics": Page(f"trtllm_num_requests_running{TRTLLM} 4\n"),
    }
    async with serving(**pages) as server, HttpClient() as client:
        scraper = EngineScraper(EngineTarget(engine="chat", url=server.url), client)
        first, second = await scraper.scrape(lambda: 0.0), await scraper.scrape(lambda: 5.0)
        assert isinstance(first, EngineReading)
        assert isinstance(second, EngineReading)
        assert (first.facts.kind, first.replicas[0].requests_running) == ("trtllm", 4)
        assert server.asked.count("/metrics") == 1


# https://github.com/NVIDIA/TensorRT-LLM/pull/12132
def test_hits_of_the_warm_up_do_not_count_among_those_of_now():
    def body(second: int) -> str:
        hits = 900 + (0 if second < 5 else 10 * (second - 5))  # 900 blocks in the warm-up
        return (
            f"trtllm_kv_cache_hit_rate{TRTLLM} 0.9\ntrtllm_kv_cache_tokens_per_block{TRTLLM} 32\n"
            f"trtllm_kv_cache_reused_blocks_total{TRTLLM} {hits}\n"
            f"trtllm_kv_cache_missed_blocks_total{TRTLLM} {100 + 30 * second}\n"
            f"trtllm_prompt_tokens_total{TRTLLM} {32000 + 40 * 32 * second}\n"
        )

    readings = [read(body(second), float(second)) for second in range(5, 15)]
    assert readings[0].replicas[0].prefix_cache_hit_ratio is None
    # 10 of 40 blocks of 32 tokens a second are hits: three quarters of the prompts are computed.
    assert load_of(readings, Thresholds()).prompt_tokens_per_second == pytest.approx(0.75 * 40 * 32)


# https://github.com/triton-inference-server/tensorrtllm_backend/issues/479
def test_blocks_that_the_python_backend_does_not_register_are_unknown():
    replica = only('nv_inference_request_success{model="tensorrt_llm",version="1"} 5\n')
    assert (replica.kv_cache_usage_ratio, replica.kv_cache_capacity_tokens, replica.requests_running) == (None,) * 3


# https://github.com/triton-inference-server/tensorrtllm_backend/issues/49
def test_blocks_and_requests_that_are_all_zero_are_unknown_too():
    zero = "".join(
        f'nv_trt_llm_{family}{{model="tensorrt_llm",version="1",{key}="{value}"}} 0\n'
        for family, key, values in (
            ("request_metrics", "request_type", ("max", "active", "waiting", "scheduled")),
            ("kv_cache_block_metrics", "kv_cache_block_type", ("max", "used", "free", "tokens_per", "fraction")),
        )
        for value in values
    )
    assert only(zero) == ReplicaReading()


# https://github.com/openvinotoolkit/model_server/issues/3689
async def test_an_exposition_that_is_called_json_is_read_for_what_it_is():
    async with serving(metrics=Page("vllm:num_requests_running 2\n", content_type=JSON)) as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert reading.replicas[0].requests_running == 2


# https://github.com/huggingface/text-generation-inference/issues/3241
async def test_a_health_check_that_fails_under_load_is_no_death_while_the_queue_is_told():
    pages = {"metrics": Page("tgi_queue_size 40\ntgi_batch_current_size 8\n"), "health": Page(status=503)}
    async with serving(**pages) as server:
        reading = await scraped(server.url)
        assert isinstance(reading, EngineReading)
        assert (reading.replicas[0].requests_waiting, reading.replicas[0].requests_running) == (40, 8)
