"""Each scenario shows its story within fifteen seconds, and none shows another's."""

import time

import pytest

from pinchpoint.simulator import SCENARIOS, SimulatedMachine
from pinchpoint.snapshot import Slo

SLO = Slo()


def played(scenario, seconds=15, seed=1):
    machine = SimulatedMachine(seed, scenario)
    machine.advance_to(seconds)
    return machine, machine.engines[machine.scenario.engine]


def mean(tally):
    return tally.sum / tally.count


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_healthy_keeps_its_promise_with_room_to_spare(seed):
    machine, _ = played("healthy", 60, seed)
    for engine in machine.engines.values():
        assert engine.running > 0
        assert engine.waiting == 0
        assert engine.ledger.preemptions == 0
        assert mean(engine.ledger.ttft) < SLO.ttft_seconds / 4
        assert mean(engine.ledger.inter_token) < SLO.tpot_seconds * 0.85
        assert engine.batcher.pool.usage_ratio < 0.7


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_memory_wall_fills_the_cache_queues_and_preempts_with_slots_free(seed):
    _, engine = played("memory_wall", seed=seed)
    assert engine.batcher.pool.usage_ratio > 0.9
    assert engine.waiting > 10
    assert engine.ledger.preemptions > 3
    assert engine.running < engine.spec.max_num_seqs / 2
    assert mean(engine.ledger.ttft) > SLO.ttft_seconds * 0.8


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_slots_exhausted_queues_with_a_nearly_empty_cache(seed):
    _, engine = played("slots_exhausted", seed=seed)
    assert engine.running == engine.spec.max_num_seqs
    assert engine.waiting > 10
    assert engine.batcher.pool.usage_ratio < 0.2
    assert mean(engine.ledger.ttft) > SLO.ttft_seconds


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_prefill_storm_saturates_the_tensor_cores_and_nothing_else(seed):
    machine, engine = played("prefill_storm", seed=seed)
    assert mean(engine.ledger.ttft) > SLO.ttft_seconds
    assert engine.waiting > 0
    assert engine.running < engine.spec.max_num_seqs
    assert engine.batcher.pool.usage_ratio < 0.8
    gpu = next(reading for reading in machine.gpu_readings(0) if reading.gpu == engine.spec.gpus[0])
    assert gpu.tensor_active_ratio > 0.4
    assert gpu.dram_active_ratio < 0.2


def test_a_throttled_gpu_says_so_and_slows_every_token():
    machine, engine = played("throttled_gpu", 30)
    _, healthy = played("healthy", 30)
    readings = {reading.gpu: reading for reading in machine.gpu_readings(0)}
    hot, cool = readings["1"], readings["0"]
    assert hot.throttle_active["hw_thermal_slowdown"] == 1
    assert hot.throttle_seconds_total["hw_thermal_slowdown"] == pytest.approx(30)
    assert hot.clock_hertz["sm"] < 0.5 * hot.clock_max_hertz["sm"]
    assert hot.temperature_celsius["gpu"] > cool.temperature_celsius["gpu"] + 20
    assert sum(cool.throttle_active.values()) == 0
    assert cool.clock_hertz["sm"] == cool.clock_max_hertz["sm"]
    assert mean(engine.ledger.inter_token) > max(SLO.tpot_seconds, 1.5 * mean(healthy.ledger.inter_token))
    assert engine.ledger.preemptions == 0


def test_idle_is_flat():
    machine, _ = played("idle", 60)
    assert all(engine.ledger.generation_tokens == 0 for engine in machine.engines.values())
    for reading in machine.gpu_readings(0):
        assert reading.utilization_ratio == 0
        assert reading.power_watts < 0.2 * reading.power_limit_watts


def test_a_change_ends_the_old_story_at_once_and_counters_go_on():
    machine, chat = played("memory_wall", 30)
    tokens = chat.ledger.generation_tokens
    machine.use("idle")
    assert chat.running == chat.waiting == 0
    machine.advance_to(60)
    assert chat.ledger.generation_tokens == tokens
    machine.use("slots_exhausted")
    machine.advance_to(75)
    rag = machine.engines[machine.scenario.engine]
    assert rag.running == rag.spec.max_num_seqs
    assert rag.waiting > 10
    assert chat.waiting == 0
    assert chat.ledger.generation_tokens > tokens


def test_used_gpu_memory_is_flat_whatever_the_load():
    used = {reading.memory_used_bytes for name in SCENARIOS for reading in played(name)[0].gpu_readings(0)}
    assert len(used) == 1


def test_energy_is_the_integral_of_power():
    machine = SimulatedMachine(1, "idle")
    machine.advance_to(10)
    before = machine.gpu_readings(0)[0]
    machine.advance_to(110)
    after = machine.gpu_readings(0)[0]
    joules = after.energy_joules_total - before.energy_joules_total
    assert joules == pytest.approx(100 * after.power_watts, rel=0.02)


def test_an_unknown_scenario_is_refused_by_name():
    with pytest.raises(ValueError, match="no scenario 'panic': choose one of healthy"):
        SimulatedMachine(1, "panic")


def test_the_busiest_scenario_runs_twenty_times_faster_than_time():
    began = time.perf_counter()
    played("slots_exhausted", 60)
    assert 60 / (time.perf_counter() - began) > 20
