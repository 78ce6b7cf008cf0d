"""Whom a request is sent to."""

from collections import Counter
from dataclasses import replace

import pytest

from pinchpoint.simulator import play
from pinchpoint.simulator.world import Leak, Routing
from tests.simulator.node.worlds import FEW, small_world

LIGHT = replace(FEW, arrivals_per_second=0.5)
HEAVY = replace(FEW, arrivals_per_second=12.0)


def shares(policy, workload, weights=(), replicas=3):
    routing = Routing(policy=policy, weights=weights)
    service = play(small_world(replicas=replicas, routing=routing, workload=workload), 120.0)
    sent = Counter(sent.replica for sent in service.sent)
    return [sent[index] / sent.total() for index in range(replicas)]


@pytest.mark.parametrize("workload", [LIGHT, HEAVY])
@pytest.mark.parametrize("policy", ["least_loaded", "round_robin"])
def test_equal_replicas_get_equal_shares(policy, workload):
    assert shares(policy, workload) == pytest.approx([1 / 3] * 3, abs=0.05)


def test_weights_are_shares():
    assert shares("weighted", HEAVY, (6.0, 3.0, 1.0)) == pytest.approx([0.6, 0.3, 0.1], abs=0.05)


def test_the_least_loaded_is_spared_what_a_blind_turn_gives_to_a_slow_replica():
    queued = []
    for policy in ("least_loaded", "round_robin"):
        stalled = small_world(replicas=2, routing=Routing(policy=policy))
        service = play(stalled, 0.0)
        service.engines[1].conditions.stalled = True
        for _ in range(20):
            service.advance_to(service.now + 0.25)
        queued.append(sum(sent.replica == 1 for sent in service.sent) / len(service.sent))
    assert queued[0] < queued[1]


def test_the_dead_get_nothing():
    service = play(small_world(replicas=2, faults=(Leak(gpu="1", bytes_per_second=1e9),)), 20.0)
    assert service.dead == {1}
    died = max(sent.sent_at for sent in service.sent if sent.replica == 1)
    assert died < 10.0
    assert all(sent.replica == 0 for sent in service.sent if sent.sent_at > died)


def test_an_unknown_policy_is_refused_by_name():
    with pytest.raises(ValueError, match="no routing policy 'best': choose one of least_loaded"):
        play(small_world(routing=Routing(policy="best")), 1.0)
