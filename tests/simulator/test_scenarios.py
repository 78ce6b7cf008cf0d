"""Each scenario shows its story within half a minute, and none shows another's."""

from statistics import fmean

import pytest

from pinchpoint.simulator import SCENARIOS, play, world_of
from pinchpoint.snapshot import Placement
from tests.simulator.node.worlds import history

SEEDS = pytest.mark.parametrize("seed", [1, 2, 3])


def played(scenario, seconds=30, seed=1, service=None):
    return play(world_of(scenario, seed, service), seconds)


def mean(tally):
    return tally.sum / tally.count


def readings(service):
    return [reading for reading in service.gpu_readings(0.0) if reading.up]


@SEEDS
@pytest.mark.parametrize("name", list(SCENARIOS["healthy"].worlds))
def test_healthy_keeps_its_promise_with_room_to_spare(name, seed):
    service = played("healthy", 60, seed, name)
    slo = service.world.slo
    for engine in service.engines:
        assert engine.ledger.generation_tokens > 0
        assert engine.waiting == 0
        assert engine.ledger.preemptions == 0
        assert mean(engine.ledger.ttft) < slo.ttft_seconds / 4
        assert mean(engine.ledger.inter_token) < slo.tpot_seconds * 0.85
        assert engine.kv_usage_ratio < 0.7


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name != "idle"])
def test_whom_a_scenario_does_not_happen_to_has_the_day_of_the_healthy_one(name):
    scenario, healthy = SCENARIOS[name], SCENARIOS["healthy"]
    others = scenario.worlds.keys() - {scenario.service}
    assert len(others) == 3
    assert all(scenario.worlds[other] == healthy.worlds[other] for other in others)


@SEEDS
def test_memory_wall_fills_the_cache_queues_and_preempts_with_slots_free(seed):
    service = played("memory_wall", seed=seed)
    (engine,) = service.engines
    assert engine.kv_usage_ratio > 0.9
    assert engine.waiting > 10
    assert engine.ledger.preemptions > 3
    assert engine.running < engine.spec.max_num_seqs / 2
    assert mean(engine.ledger.ttft) > service.world.slo.ttft_seconds


@SEEDS
def test_slots_exhausted_queues_with_a_nearly_empty_cache(seed):
    service = played("slots_exhausted", seed=seed)
    (engine,) = service.engines
    assert engine.running == engine.spec.max_num_seqs
    assert engine.waiting > 10
    assert engine.kv_usage_ratio < 0.2
    assert mean(engine.ledger.ttft) > service.world.slo.ttft_seconds


@SEEDS
def test_prefill_storm_saturates_the_tensor_cores_and_nothing_else(seed):
    service = played("prefill_storm", seed=seed)
    (engine,) = service.engines
    assert mean(engine.ledger.ttft) > service.world.slo.ttft_seconds
    assert engine.running < engine.spec.max_num_seqs
    assert engine.kv_usage_ratio < 0.8
    for card in readings(service):
        assert card.tensor_active_ratio > 0.4
        assert card.dram_active_ratio < 0.2


@SEEDS
def test_bandwidth_bound_moves_bytes_all_the_time_and_every_token_is_late(seed):
    seen = history(world_of("bandwidth_bound", seed), 60, readings)[20:]
    for card in (0, 1):
        assert fmean(cards[card].dram_active_ratio for cards in seen) > 0.5
        assert fmean(cards[card].tensor_active_ratio for cards in seen) < 0.3
    service = played("bandwidth_bound", 60, seed)
    for engine in service.engines:
        assert mean(engine.ledger.inter_token) > service.world.slo.tpot_seconds
        assert engine.running < engine.spec.max_num_seqs
        assert engine.ledger.preemptions == 0


@SEEDS
def test_ranks_over_pcie_are_busy_with_waiting_for_each_other(seed):
    service = played("pcie_tp", seed=seed)
    (engine,) = service.engines
    work = engine.work()
    assert work.communication_seconds > 0.4 * work.gpu_seconds
    assert mean(engine.ledger.ttft) > service.world.slo.ttft_seconds
    assert {link.link for link in service.links} == {"SYS"}
    for card in readings(service):
        assert card.utilization_ratio > 0.9
        assert card.power_watts < 0.75 * card.power_limit_watts
        assert card.pcie_transmit_bytes_per_second > 3e9


def test_a_throttled_gpu_says_so_and_slows_every_token():
    service, healthy = played("throttled_gpu"), played("healthy")
    cool, hot = readings(service)
    assert hot.throttle_active["hw_thermal_slowdown"] == 1
    assert cool.throttle_active["hw_thermal_slowdown"] == 0
    pace, usual = (mean(played.engines[0].ledger.inter_token) for played in (service, healthy))
    assert pace > max(service.world.slo.tpot_seconds, 1.5 * usual)
    assert service.engines[0].ledger.preemptions == 0


@SEEDS
def test_a_starved_host_is_throttled_and_its_cards_rest(seed):
    service = played("host_starved", seed=seed)
    healthy = played("healthy", seed=seed, service=service.world.engine.name)
    assert service.host.cpu_throttled_ratio > 0.85
    assert mean(service.engines[0].ledger.inter_token) > 3 * mean(healthy.engines[0].ledger.inter_token)
    assert max(card.utilization_ratio for card in readings(service)) < 0.6


def test_behind_a_buffering_gateway_the_engine_is_quick_and_its_clients_wait():
    service = played("buffering_gateway", 60)
    seen = [sent.ttft_seconds for sent in service.sent if sent.finished_at is not None]
    assert mean(service.engines[0].ledger.ttft) < service.world.slo.ttft_seconds / 4
    assert sorted(seen)[len(seen) // 2] > service.world.slo.ttft_seconds


@SEEDS
def test_of_uneven_replicas_one_queues_and_the_other_rests(seed):
    service = played("uneven_replicas", seed=seed)
    crowded, idle = service.engines
    assert crowded.running == crowded.spec.max_num_seqs
    assert crowded.waiting > 10
    assert idle.running < 0.3 * idle.spec.max_num_seqs
    assert idle.waiting == 0


def test_a_leaking_neighbour_takes_memory_and_nothing_else():
    world = world_of("neighbour_leak", seed=1)
    before, after = (readings(play(world, seconds))[0].memory_used_bytes for seconds in (10, 70))
    assert after - before == pytest.approx(60 * 6e6)
    service, healthy = play(world, 30), played("healthy", service=world.engine.name)
    assert service.engines[0].ledger.generation_tokens == healthy.engines[0].ledger.generation_tokens


def test_a_stalled_engine_queues_and_gives_nothing():
    service = played("stalled", 20)
    tokens = service.engines[0].ledger.generation_tokens
    assert tokens > 0
    service.advance_to(40)
    assert service.engines[0].ledger.generation_tokens == tokens
    assert service.engines[0].open_requests > 20


def test_who_sleeps_and_who_idles_does_nothing():
    asleep, idle = played("asleep"), played("idle", 60)
    assert all(engine.conditions.asleep for engine in asleep.engines)
    assert not any(engine.conditions.asleep for engine in idle.engines)
    for service in (asleep, idle):
        assert sum(engine.ledger.generation_tokens for engine in service.engines) == 0
        for card in readings(service):
            assert card.utilization_ratio == 0
            assert card.power_watts < 0.2 * card.power_limit_watts


def test_a_scenario_sends_no_probes_of_its_own():
    assert [probe for probe in played("healthy", 60).probes() if probe.placement is Placement.LOCAL] == []
