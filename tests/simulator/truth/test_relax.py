"""A relaxed world differs in what was relaxed, and in nothing that its clients do."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.simulator.node.service import play
from pinchpoint.simulator.truth import RESOURCES, relaxed, with_one_more_replica, with_tensor_parallel_doubled, world_of
from pinchpoint.simulator.world import Stall, Throttle
from tests.simulator.truth.extremes import EXTREMES, HEALTHY, L40S_PAIR, PAIR


def _questions(world):
    return [(sent.sent_at, sent.request.prompt_tokens, sent.request.output_tokens) for sent in play(world, 10.0).sent]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_whatever_is_relaxed_the_same_questions_come_at_the_same_times(seed):
    """Of open arrivals; clients who wait ask again the sooner, the sooner they are answered."""
    world = world_of(seed)
    open_world = replace(world, workload=replace(world.workload, clients=0, turns=1, arrivals_per_second=3.0))
    asked = _questions(open_world)
    others = [other for resource in RESOURCES for other in relaxed(open_world, resource)]
    others += filter(None, (with_one_more_replica(open_world), with_tensor_parallel_doubled(open_world)))
    for other in others:
        assert _questions(other) == asked


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_what_has_been_relaxed_has_little_left_to_relax(seed):
    """Of faults, balancer, gateway: nothing. A generous number can still be made more so."""
    world = world_of(seed)
    for resource in ("hardware", "stalled", "imbalance", "network"):
        for other in relaxed(world, resource):
            assert relaxed(other, resource) == ()


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_more_gpus_keep_the_flags_and_the_faults(seed):
    world = world_of(seed)
    for more in filter(None, (with_one_more_replica(world), with_tensor_parallel_doubled(world))):
        assert more.host == world.host
        assert more.workload == world.workload
        assert len(more.faults) == len(world.faults)
        assert more.engine.max_num_seqs == world.engine.max_num_seqs
        assert more.engine.link == world.engine.link
        assert more.replicas * more.engine.tensor_parallel_size > world.replicas * world.engine.tensor_parallel_size


def test_the_first_replica_is_the_same_machine_whatever_is_relaxed():
    """Its own efficiencies come from the seed, not from what stands beside it."""
    quiet = replace(HEALTHY, workload=replace(HEALTHY.workload, arrivals_per_second=0.2))
    alone, beside = play(quiet, 30.0), play(with_one_more_replica(quiet), 30.0)
    first = [sent.finished_at for sent in beside.sent if sent.replica == 0]
    assert first[0] == alone.sent[0].finished_at


def test_a_fault_stays_on_the_same_rank_of_the_same_replica_when_ranks_are_doubled():
    ill = Throttle(gpu="3", clock_ratio=0.5), Stall(replica=1, at=5.0)
    world = replace(PAIR, engine=L40S_PAIR, faults=ill)
    doubled = with_tensor_parallel_doubled(world)
    assert doubled is not None
    assert doubled.faults == (replace(ill[0], gpu="5"), ill[1])


def test_a_new_replica_gets_the_mean_share_of_a_router_by_weights():
    assert with_one_more_replica(EXTREMES["imbalance"]).routing.weights == (30.0, 1.0, 15.5)


def test_ranks_are_not_doubled_where_nothing_links_the_cards():
    l40s_over_nvlink = replace(HEALTHY, engine=replace(HEALTHY.engine, gpu=L40S_PAIR.gpu, link="NV18"))
    assert with_tensor_parallel_doubled(l40s_over_nvlink) is None
    assert with_tensor_parallel_doubled(replace(HEALTHY, engine=replace(HEALTHY.engine, mig=True))) is None


def test_a_single_rank_has_no_interconnect_to_relax():
    assert relaxed(HEALTHY, "interconnect") == ()


@pytest.mark.parametrize("resource", ["kv_capacity", "scheduler", "compute", "memory_bandwidth", "host_cpu"])
def test_there_is_always_more_to_be_had_of_what_can_be_counted(resource):
    assert relaxed(HEALTHY, resource)
