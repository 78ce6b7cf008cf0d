"""How long steps take follows from what they do, what they run on, and what the node does to them."""

import time
from dataclasses import replace
from random import Random

import pytest

from pinchpoint.physics import CONFIGS, GPUS, LLAMA_3_3_70B
from pinchpoint.simulator.engine.batching import Batch
from pinchpoint.simulator.engine.conditions import Conditions
from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.engine.timing import StepTimer
from pinchpoint.simulator.world import Host
from tests.simulator.engine.small import crowd, request, small_spec

NO_CONDITIONS = Conditions()


def decoding(requests, context=500):
    batch = Batch()
    for _ in range(requests):
        batch.add(context, 1)
    return batch


def prefill(tokens):
    batch = Batch()
    batch.add(tokens, tokens)
    return batch


def cost(batch, conditions=NO_CONDITIONS, host=None, seed=1, **changes):
    return StepTimer(small_spec(**changes), host or Host(), Random(seed)).cost(batch, conditions)


def test_slow_clocks_slow_compute_in_proportion_and_memory_only_when_very_slow():
    def slowdown(batch, clock_ratio):
        slow = cost(batch, Conditions(clock_ratio=clock_ratio))
        return slow.gpu_seconds / cost(batch).gpu_seconds

    assert slowdown(prefill(4000), 0.5) == pytest.approx(2.0, abs=0.05)
    assert slowdown(decoding(8), 0.85) == 1.0
    assert slowdown(decoding(8), 0.4) == pytest.approx(2.0, abs=0.2)


def test_a_host_step_longer_than_the_gpus_always_shows():
    slow_host = Host(step_seconds=0.050)
    for seed in range(20):
        step = cost(decoding(4), host=slow_host, seed=seed)
        assert step.seconds > 0.999 * step.host_cpu_seconds > 0.04
        assert step.gpu_seconds < 0.012


def test_some_nodes_hide_a_part_of_the_hosts_time_behind_the_gpu_and_some_do_not():
    shown = []
    for seed in range(40):
        step = cost(decoding(200), seed=seed)
        shown.append((step.seconds - step.gpu_seconds) / step.host_cpu_seconds)
    assert min(shown) >= 0.1
    assert max(shown) == pytest.approx(1.0)
    assert 5 < sum(share < 0.7 for share in shown) < 40


def test_a_host_that_is_stopped_launches_late_and_works_no_more_than_otherwise():
    timer, batch = StepTimer(small_spec(), Host(), Random(1)), decoding(32)
    begins = [timer.cost(batch, Conditions(cpu_share=0.4, cpu_period_seconds=0.1), now) for now in (0.01, 0.06)]
    running, stopped = begins
    assert stopped.seconds - running.seconds == pytest.approx(0.04, abs=0.002)
    assert stopped.gpu_seconds == pytest.approx(running.gpu_seconds, rel=0.2)
    assert stopped.host_cpu_seconds == pytest.approx(running.host_cpu_seconds, rel=0.2)


def test_a_step_that_is_launched_before_the_stop_runs_through_it():
    slow = {"gpu": GPUS["NVIDIA L4"], "num_gpu_blocks_override": 200}
    timer = StepTimer(small_spec(**slow), Host(), Random(1))
    usual = timer.cost(decoding(8), NO_CONDITIONS)
    through = timer.cost(decoding(8), Conditions(cpu_share=0.4, cpu_period_seconds=0.1), 0.03)
    assert usual.seconds > 0.06
    assert through.seconds == pytest.approx(usual.seconds, rel=0.2)


PAIR = {"gpus": ("0", "1"), "num_gpu_blocks_override": 200}


def test_ranks_far_apart_talk_longer_and_over_other_wires():
    near, far = cost(prefill(1000), **PAIR), cost(prefill(1000), **PAIR, link="SYS")
    assert far.communication_seconds > 5 * near.communication_seconds > 0
    assert far.gpu_seconds - near.gpu_seconds == pytest.approx(far.communication_seconds - near.communication_seconds)
    assert far.pcie_communication_bytes == near.nvlink_communication_bytes == 64 * 1000 * 4096 * 2
    assert far.nvlink_communication_bytes == near.pcie_communication_bytes == 0


def test_a_single_rank_talks_to_nobody():
    step = cost(prefill(1000))
    assert step.communication_seconds == step.nvlink_communication_bytes == step.pcie_communication_bytes == 0


def test_more_ranks_have_less_to_do_each_and_more_to_say():
    two, eight = (
        cost(decoding(32), model_config=LLAMA_3_3_70B, gpus=tuple(map(str, range(ranks)))) for ranks in (2, 8)
    )
    assert eight.moved_bytes < two.moved_bytes / 3
    assert eight.communication_seconds > two.communication_seconds


def test_quantised_weights_are_read_sooner_and_only_fp8_is_computed_faster():
    plain, fp8, int4 = (cost(decoding(1), quantization=word) for word in (None, "fp8", "int4"))
    assert fp8.moved_bytes == pytest.approx(plain.moved_bytes / 2, rel=0.02)
    assert int4.moved_bytes == pytest.approx(plain.moved_bytes * 0.515 / 2, rel=0.02)
    plain, fp8, int4 = (cost(prefill(4000), quantization=word) for word in (None, "fp8", "int4"))
    assert fp8.gpu_seconds < 0.6 * plain.gpu_seconds
    assert int4.gpu_seconds == plain.gpu_seconds


def test_small_keys_and_values_are_half_of_what_decode_reads_beyond_the_weights():
    def of_the_cache(**changes):
        return cost(decoding(64, 900), **changes).moved_bytes - cost(decoding(64, 100), **changes).moved_bytes

    assert of_the_cache(kv_cache_dtype="fp8") == of_the_cache() / 2


def test_a_mixture_of_experts_reads_more_weights_for_more_tokens():
    experts = {"model_config": CONFIGS["Qwen/Qwen3-30B-A3B"]}
    one, crowded, all_of_them = (cost(decoding(n, 1), **experts).moved_bytes for n in (1, 16, 4000))
    assert one < 0.2 * all_of_them
    assert 0.5 * all_of_them < crowded < 0.8 * all_of_them


def test_a_generous_card_differs_in_nothing_else():
    usual = small_spec()
    generous = replace(usual, gpu=replace(usual.gpu, bandwidth_bytes_per_second=4 * 3350e9))
    first, second = (
        StepTimer(spec, Host(), Random(7)).cost(prefill(4000), NO_CONDITIONS) for spec in (usual, generous)
    )
    assert first == second  # this step is paced by the tensor cores


def test_work_grows_evenly_while_a_step_is_in_flight():
    engine = SimulatedEngine(small_spec())
    engine.submit(request(prompt=1000, output=1))
    engine.run_until(0.0)
    half = engine.next_event_at / 2
    engine.run_until(half)
    begun = engine.work()
    engine.run_until(1.0)
    whole = engine.work()
    assert 0 < begun.flops == pytest.approx(whole.flops / 2)
    assert whole.since(begun).gpu_seconds == pytest.approx(begun.gpu_seconds)


@pytest.mark.parametrize("card", ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L4"])
def test_one_request_gets_tokens_as_fast_as_a_real_engine_reads_its_weights(card):
    """Real engines reach 0.5 to 0.85 of the bandwidth in decode, the host's time between two steps included."""
    spec = small_spec(gpu=GPUS[card], num_gpu_blocks_override=None)
    read = spec.shape.weight_bytes_read(1) / spec.gpu.bandwidth_bytes_per_second
    assert all(0.5 < read / cost(decoding(1), seed=seed, gpu=GPUS[card]).seconds < 0.85 for seed in range(50))


def test_two_crowded_minutes_take_a_second_or_two():
    engine = SimulatedEngine(small_spec(num_gpu_blocks_override=None, max_model_len=8192))
    for each in crowd(2400, 20, output=(100, 500)):
        engine.submit(each)
    began = time.process_time()
    engine.run_until(120)
    assert time.process_time() - began < 5.0
    assert engine.ledger.generation_tokens > 500_000
