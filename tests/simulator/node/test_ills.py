"""What goes wrong, when it goes wrong, and to whom."""

from dataclasses import replace
from math import inf

import pytest

from pinchpoint.simulator import Service, Workload, play
from pinchpoint.simulator.world import Leak, LostCard, Stall, Throttle
from pinchpoint.snapshot import GpuState
from tests.simulator.node.worlds import FEW, history, readings, small_world

PAIRS = {"gpus": ("0", "1")}


def pace(service):
    tally = service.engines[0].ledger.inter_token
    return tally.sum / tally.count


def test_a_throttled_card_slows_its_peer_too_and_says_why_alone():
    ill = small_world(engine=PAIRS, faults=(Throttle(gpu="1", clock_ratio=0.3, at=5.0),))
    service = play(ill, 40.0)
    cool, hot = readings(service).values()
    assert hot.throttle_active["hw_thermal_slowdown"] == 1
    assert hot.throttle_seconds_total["hw_thermal_slowdown"] == pytest.approx(35.0, abs=1.0)
    assert hot.clock_hertz["sm"] == pytest.approx(0.3 * hot.clock_max_hertz["sm"])
    assert hot.temperature_celsius["gpu"] > cool.temperature_celsius["gpu"] + 20
    assert cool.throttle_active["hw_thermal_slowdown"] == 0
    assert cool.clock_hertz["sm"] > 0.9 * cool.clock_max_hertz["sm"]
    assert pace(service) > 1.5 * pace(play(replace(ill, faults=()), 40.0))


def test_a_throttle_harms_the_replica_on_its_card_and_no_other():
    service = play(small_world(engine=PAIRS, replicas=2, faults=(Throttle(gpu="3", clock_ratio=0.3),)), 20.0)
    assert [engine.conditions.clock_ratio for engine in service.engines] == [1.0, 0.3]


def test_a_leak_grows_steadily_and_ends_the_engine_when_the_card_is_full():
    world = small_world(faults=(Leak(gpu="0", bytes_per_second=2e8, begins_with_bytes=1e9),))
    seen = history(world, 40, lambda service: (service.dead, readings(service)["0"].memory_used_bytes))
    used = [bytes_ for dead, bytes_ in seen if not dead]
    assert used[10] - used[5] == pytest.approx(5 * 2e8)
    assert 10 < len(used) < 35
    dead, left = seen[-1]
    assert dead == {0}
    assert left < used[0]  # what the engine had is free again


def test_clients_of_a_dead_engine_are_refused_and_come_back_for_more():
    workload = Workload(clients=4)
    service = play(small_world(workload=workload, faults=(Leak(gpu="0", bytes_per_second=2e9),)), 20.0)
    assert service.living == ()
    assert service.engines[0].running == 0
    refused = [sent for sent in service.sent if sent.refused]
    assert len(refused) > 4 * 10
    assert all(sent.finished_at is None and sent.ttft_seconds is None for sent in refused)


def test_clients_of_a_dead_replica_go_to_the_other():
    world = small_world(workload=Workload(clients=6), replicas=2, faults=(Leak(gpu="0", bytes_per_second=2e9),))
    service = play(world, 30.0)
    assert service.dead == {0}
    assert service.engines[1].running == 6


def test_a_stalled_replica_keeps_its_gauges_queues_and_goes_on_afterwards():
    world = small_world(faults=(Stall(replica=0, at=5.0, until=15.0),))
    seen = history(world, 25, lambda service: (service.engines[0].ledger.generation_tokens, service.engines[0].running))
    tokens, running = zip(*seen, strict=True)
    assert tokens[7] == tokens[14] > tokens[3] > 0
    assert running[7] == running[13]
    assert tokens[-1] > 2 * tokens[14]


def test_a_lost_card_has_no_readings_and_its_engine_stands_still():
    service = Service(small_world(engine=PAIRS, faults=(LostCard(gpu="1", at=5.0),)))
    service.advance_to(10.0)
    here, lost = readings(service).values()
    assert (here.up, here.state) == (True, GpuState.OK)
    assert (lost.up, lost.state) == (False, GpuState.LOST)
    assert lost.utilization_ratio is None
    tokens = service.engines[0].ledger.generation_tokens
    service.advance_to(20.0)
    assert service.engines[0].ledger.generation_tokens == tokens
    assert service.engines[0].open_requests > 20


def test_times_of_faults_count_from_when_their_world_began():
    service = Service(small_world())
    service.advance_to(100.0)
    service.use(small_world(faults=(Stall(replica=0, at=5.0, until=inf),)))
    service.advance_to(104.0)
    assert not service.engines[0].conditions.stalled
    service.advance_to(106.0)
    assert service.engines[0].conditions.stalled


def test_who_sleeps_does_nothing_and_says_so():
    service = play(small_world(asleep=True, workload=replace(FEW, arrivals_per_second=0.0)), 5.0)
    assert service.engines[0].conditions.asleep
    assert service.probes() == ()
