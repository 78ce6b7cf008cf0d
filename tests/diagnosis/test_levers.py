"""Levers: the cheap before the dear, with this engine's own numbers, and none that is pulled already."""

from dataclasses import replace

import pytest

from pinchpoint.diagnosis import Advice, Bottleneck, Signals, Thresholds
from pinchpoint.diagnosis.devices import Devices
from pinchpoint.diagnosis.growth import Growth
from pinchpoint.diagnosis.host import HostLoad
from pinchpoint.diagnosis.latency import Latency
from pinchpoint.diagnosis.levers import levers_for
from pinchpoint.diagnosis.levers.flags import flag
from pinchpoint.diagnosis.links import Links
from pinchpoint.diagnosis.load import Load
from pinchpoint.diagnosis.roofline import Roofline
from pinchpoint.diagnosis.spread import Spread
from pinchpoint.diagnosis.way import Way
from pinchpoint.physics import LLAMA_3_1_8B, LLAMA_3_3_70B
from pinchpoint.snapshot import EngineFacts

KV, COMPUTE, BANDWIDTH = Bottleneck.KV_CAPACITY, Bottleneck.COMPUTE, Bottleneck.MEMORY_BANDWIDTH
H100 = "NVIDIA H100 80GB HBM3"
LATE = Latency(ttft_judged_seconds=9.0, ttft_judged_by="p95", tpot_judged_seconds=0.02)
SLOW = Latency(ttft_judged_seconds=0.5, tpot_judged_seconds=0.08)
QUEUED = Load(
    scrapes=20.0,
    span_seconds=20.0,
    requests_running=40.0,
    requests_waiting=20.0,
    queue_share=1.0,
    queue_wait_seconds=6.0,
    kv_cache_usage_ratio=0.4,
    queue_kv_cache_usage_ratio=0.4,
    kv_cache_capacity_tokens=30_000.0,
)
ENGINE = Signals(
    facts=EngineFacts(
        kind="vllm", model_config=LLAMA_3_1_8B, gpu_name=H100, max_num_seqs=40, max_num_batched_tokens=4096
    ),
    load=QUEUED,
    latency=LATE,
)


def levers(bottleneck: Bottleneck, signals: Signals = ENGINE, *missing: str) -> dict[str, Advice]:
    return {advice.action: advice for advice in levers_for(bottleneck, signals, Thresholds(), missing)}


def known(signals: Signals = ENGINE, **facts: object) -> Signals:
    return replace(signals, facts=replace(signals.facts, **facts))  # type: ignore[arg-type]


def test_a_flag_has_all_digits_of_its_number() -> None:
    assert flag("vllm", "max_model_len", 1_048_576.0) == "--max-model-len 1048576"
    assert flag("sglang", "gpu_memory_utilization", 0.95) == "--mem-fraction-static 0.95"


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
def test_every_class_has_a_lever_but_those_that_need_none(bottleneck: Bottleneck) -> None:
    sick = replace(ENGINE, devices=Devices(gpus_to_recover=0.0), host=HostLoad(host_cpu_throttled_ratio=0.3))
    offered = levers(bottleneck, sick, "gpu_readings")
    wanted = bottleneck not in (Bottleneck.IDLE, Bottleneck.HEALTHY, Bottleneck.HARDWARE)
    assert bool(offered) is wanted, offered
    assert all(advice.text.endswith((".", ")")) for advice in offered.values())


def test_nothing_known_at_all_still_gives_advice_and_no_number() -> None:
    for bottleneck in (KV, COMPUTE, Bottleneck.SCHEDULER, Bottleneck.INTERCONNECT, Bottleneck.IMBALANCE):
        offered = levers(bottleneck, Signals())
        assert offered, bottleneck
        assert not any("None" in word for a in offered.values() for word in (a.text, a.flag or "", a.effect or ""))


def test_the_order_goes_from_what_is_free_to_what_is_dear() -> None:
    engine = known(enable_prefix_caching=False, gpu_memory_utilization=0.8)
    assert list(levers(KV, engine)) == [
        "prefix_caching",
        "raise_gpu_memory_utilization",
        "fp8_kv_cache",
        "quantize_weights",
        "add_replica",
        "move_to_larger_gpu",
    ]


@pytest.mark.parametrize(
    ("facts", "gone"),
    [
        ({"enable_prefix_caching": True}, "prefix_caching"),
        ({"enable_prefix_caching": None}, "prefix_caching"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "fp8_kv_cache"),
        ({"quantization": "fp8"}, "quantize_weights"),
        ({"quantization": "awq_marlin"}, "quantize_weights"),
        ({"gpu_memory_utilization": 0.95}, "raise_gpu_memory_utilization"),
        ({"gpu_memory_utilization": None}, "raise_gpu_memory_utilization"),
    ],
)
def test_what_is_pulled_already_is_no_lever(facts: dict[str, object], gone: str) -> None:
    assert gone not in levers(KV, known(**facts))


def test_a_checkpoint_that_says_it_is_quantised_is() -> None:
    config = {**LLAMA_3_1_8B, "quantization_config": {"quant_method": "awq", "bits": 4}}
    assert not {"quantize_weights", "fp8_weights"} & levers(BANDWIDTH, known(model_config=config)).keys()


def test_an_fp8_cache_says_what_it_holds_in_tokens_and_requests() -> None:
    advice = levers(KV)["fp8_kv_cache"]
    assert advice.flag == "--kv-cache-dtype fp8"
    assert advice.effect == "60,000 tokens instead of 30,000 tokens, 100 more requests of today's size"


def test_a_request_of_less_than_a_token_is_a_miscount_that_counts_no_requests() -> None:
    none = replace(ENGINE, load=replace(QUEUED, requests_running=1e300))
    assert levers(KV, none)["fp8_kv_cache"].effect == "60,000 tokens instead of 30,000 tokens"
    endless = replace(ENGINE, load=replace(QUEUED, kv_cache_capacity_tokens=1e308))
    assert levers(KV, endless)["fp8_kv_cache"].effect is None


def test_a_proposed_number_of_slots_keeps_to_the_queue_the_cache_and_the_pace() -> None:
    def proposed(**load: float) -> Advice | None:
        return levers(Bottleneck.SCHEDULER, replace(ENGINE, load=replace(QUEUED, **load))).get("raise_max_num_seqs")

    by_the_queue, by_the_cache = proposed(), proposed(requests_waiting=400.0)
    assert by_the_queue is not None
    assert by_the_queue.flag == "--max-num-seqs 72", "a quarter more than the 60 that are there, in multiples of 8"
    assert by_the_cache is not None
    assert by_the_cache.flag == "--max-num-seqs 80", "KV from 40 % to 80 %"
    assert by_the_cache.effect == "40 more run at once; KV cache from 40 % to about 80 %"


def test_slots_that_the_pace_or_the_cache_bears_no_more_of_are_not_raised_but_brought_by_a_replica() -> None:
    for signals in (
        replace(ENGINE, latency=replace(LATE, tpot_judged_seconds=0.049)),
        replace(ENGINE, load=replace(QUEUED, queue_kv_cache_usage_ratio=0.79)),
    ):
        assert list(levers(Bottleneck.SCHEDULER, signals)) == ["add_replica"]


def test_a_full_token_budget_is_doubled() -> None:
    full = replace(known(max_num_batched_tokens=1024), load=replace(QUEUED, token_budget_share=0.99))
    assert levers(Bottleneck.SCHEDULER, full)["raise_max_num_batched_tokens"].flag == "--max-num-batched-tokens 2048"


def test_prompts_that_break_into_decode_get_a_smaller_budget_and_late_first_tokens_a_larger() -> None:
    assert levers(COMPUTE, replace(ENGINE, latency=SLOW))["tune_max_num_batched_tokens"].flag == (
        "--max-num-batched-tokens 2048"
    )
    assert levers(COMPUTE)["tune_max_num_batched_tokens"].flag == "--max-num-batched-tokens 8192"


def test_fp8_is_for_cards_whose_tensor_cores_know_it() -> None:
    assert "1,979 TFLOP/s" in (levers(COMPUTE)["fp8_weights"].effect or "")
    assert "fp8_weights" not in levers(COMPUTE, known(gpu_name="NVIDIA A100-SXM4-80GB"))


def test_ranks_are_doubled_where_weights_fill_the_cards_and_the_links_bear_it() -> None:
    large = known(model_config=LLAMA_3_3_70B, tensor_parallel_size=2)
    advice = levers(KV, large)["raise_tensor_parallel_size"]
    assert advice.flag == "--tensor-parallel-size 4"
    assert "in two replicas of today" in (advice.effect or "")
    assert "raise_tensor_parallel_size" not in levers(KV), "an 8B model leaves most of the card to the cache"
    for no in (
        replace(large, links=Links(link_worst_bytes_per_second=3e10)),
        replace(large, links=Links(link_without_p2p=1.0)),
        known(large, gpu_name="NVIDIA L40S"),
    ):
        assert "raise_tensor_parallel_size" not in levers(KV, no)


def test_one_prompt_that_is_too_slow_without_a_queue_takes_ranks_and_a_queue_takes_a_replica() -> None:
    alone = replace(ENGINE, load=replace(QUEUED, requests_waiting=0.0, queue_share=0.0, queue_wait_seconds=0.0))
    assert "raise_tensor_parallel_size" in levers(COMPUTE, alone)
    assert "raise_tensor_parallel_size" not in levers(COMPUTE)
    assert levers(COMPUTE)["add_replica"].reason == "a new request waits 6.0 s"


def test_tokens_that_wait_for_the_weights_are_no_faster_on_another_replica() -> None:
    few = replace(ENGINE, latency=SLOW, load=replace(QUEUED, requests_running=4.0, kv_cache_usage_ratio=0.05))
    offered = levers(BANDWIDTH, few)
    assert "add_replica" not in offered
    assert {"fp8_weights", "speculative_decoding", "raise_tensor_parallel_size"} <= offered.keys()
    assert "fp8_kv_cache" not in offered, "the cache is little of what a step reads"


def test_replicas_with_room_are_levelled_before_another_is_bought() -> None:
    uneven = replace(ENGINE, spread=Spread(replicas=4.0, replicas_queued=1.0, replicas_with_room=3.0))
    offered = levers(KV, uneven)
    assert "add_replica" not in offered
    assert offered["rebalance_replicas"].reason == "1 of 4 replicas can't keep up, 3 have room"


def test_a_model_that_fits_one_card_is_not_split_over_slow_links() -> None:
    slow = replace(
        known(tensor_parallel_size=2),
        links=Links(link_worst_bytes_per_second=2e10, communication_share=0.4, communication_step_seconds=0.012),
        roofline=Roofline(step_seconds=0.03),
    )
    offered = levers(Bottleneck.INTERCONNECT, slow)
    assert list(offered) == ["place_on_linked_gpus", "prefer_data_parallel"]
    assert offered["prefer_data_parallel"].flag == "--tensor-parallel-size 1 --data-parallel-size 2"
    assert offered["prefer_data_parallel"].effect == "up to 12 ms of the 30 ms that a step takes"
    large = levers(Bottleneck.INTERCONNECT, known(slow, model_config=LLAMA_3_3_70B))
    assert list(large) == ["place_on_linked_gpus", "prefer_pipeline_parallel"]


def test_a_host_gets_what_it_lacks() -> None:
    throttled = replace(ENGINE, host=HostLoad(host_cpu_throttled_ratio=0.3, host_cpu_cores_needed=4.0))
    assert "6 cores or more" in levers(Bottleneck.HOST_CPU, throttled)["raise_cpu_quota"].text
    few = replace(ENGINE, host=HostLoad(host_cpu_count=2.0, host_cpu_cores_needed=4.0))
    assert levers(Bottleneck.HOST_CPU, few)["give_cpu_cores"].reason == "2 cores, it needs 4"
    front = replace(ENGINE, latency=replace(LATE, ttft_mean_seconds=4.0), host=HostLoad(host_admission_seconds=3.6))
    assert levers(Bottleneck.HOST_CPU, front)["add_api_servers"].flag == "--api-server-count 4"
    assert not {"raise_cpu_quota", "give_cpu_cores", "add_api_servers"} & levers(Bottleneck.HOST_CPU).keys()


@pytest.mark.parametrize(("version", "offered"), [("0.11.0", True), ("0.33.0", False), (None, True)])
def test_async_scheduling_is_offered_where_it_is_not_on_by_itself(version: str | None, offered: bool) -> None:
    assert ("async_scheduling" in levers(Bottleneck.HOST_CPU, known(version=version))) is offered


def test_memory_that_grows_says_when_it_is_full() -> None:
    growth = Growth(
        memory_growth_bytes_per_second=2**20, memory_growth_gpu="1", memory_free_bytes=1e9, memory_full_in_seconds=900.0
    )
    advice = levers(Bottleneck.MEMORY_GROWTH, replace(ENGINE, growth=growth))["stop_memory_growth"]
    assert advice.reason == "the card's memory grows by 60 MiB a minute"
    assert "GPU 1 is full in 15 minutes" in (advice.effect or "")


def test_flags_are_those_of_the_engines_own_kind() -> None:
    assert levers(KV, known(kind="sglang"))["fp8_kv_cache"].flag == "--kv-cache-dtype fp8_e5m2"
    assert levers(KV, known(kind="tgi"))["fp8_kv_cache"].flag is None
    assert levers(KV, known(kind=""))["fp8_kv_cache"].flag == "--kv-cache-dtype fp8"


def test_a_length_is_bounded_only_where_requests_are_long_and_never_as_if_it_made_room() -> None:
    long = replace(known(max_model_len=28_672), load=replace(QUEUED, requests_running=8.0, kv_cache_usage_ratio=0.95))
    advice = levers(KV, long)["limit_max_model_len"]
    assert advice.flag == "--max-model-len 7168"
    assert "makes no room" in advice.text
    assert "limit_max_model_len" not in levers(KV, known(max_model_len=28_672)), "the mean request is short"
    assert "limit_max_model_len" not in levers(KV, replace(long, facts=replace(long.facts, max_model_len=8192)))


def test_a_neighbour_that_grows_is_no_reason_to_restart_the_engine() -> None:
    for neighbour, actions in ((True, ["stop_memory_growth"]), (False, ["stop_memory_growth", "restart_engine"])):
        growing = replace(ENGINE, growth=Growth(neighbour=neighbour))
        assert [name for name in levers(Bottleneck.MEMORY_GROWTH, growing) if name != "mig_slices"] == actions


def test_a_gateway_is_unbuffered_only_where_answers_come_whole() -> None:
    slow = Way(probe_client_ttft_seconds=3.0, probe_engine_ttft_seconds=0.4, probe_buffered_share=0.0)
    (check,) = levers(Bottleneck.NETWORK, replace(ENGINE, way=slow)).values()
    assert check.effect == "up to 2.6 s less to the first token"
    whole = levers(Bottleneck.NETWORK, replace(ENGINE, way=replace(slow, probe_buffered_share=1.0)))
    assert list(whole) == ["unbuffer_gateway", "check_gateway"]
