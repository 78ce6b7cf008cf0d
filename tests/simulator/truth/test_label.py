"""What everybody would name is what playing it again names."""

from dataclasses import replace

import pytest

from pinchpoint.simulator.truth import truth_of
from pinchpoint.simulator.world import Gateway, LostCard, Throttle
from pinchpoint.snapshot import Slo
from tests.simulator.truth.extremes import CHAT, EXTREMES, HEALTHY, PAIR

SECONDS, WARM_UP = 40.0, 10.0


@pytest.mark.parametrize("label", EXTREMES)
def test_an_extreme_world_is_what_it_looks_like(label):
    truth = truth_of(EXTREMES[label], SECONDS, WARM_UP)
    assert truth.label == label, truth


def test_faults_that_cost_nothing_leave_a_world_healthy():
    harmless = (Throttle(gpu="0", clock_ratio=0.95),)
    world = replace(HEALTHY, faults=harmless, gateway=Gateway(delay_seconds=0.03))
    assert truth_of(world, SECONDS, WARM_UP).label == "healthy"


def test_a_gateway_that_buffers_is_the_networks():
    world = replace(HEALTHY, gateway=Gateway(buffers=True))
    assert truth_of(world, SECONDS, WARM_UP).label == "network"


def test_a_card_that_is_lost_is_the_hardwares():
    world = replace(HEALTHY, faults=(LostCard(gpu="0", at=WARM_UP),))
    assert truth_of(world, SECONDS, WARM_UP).label == "hardware"


def test_more_gpus_help_where_one_more_replica_does():
    truth = truth_of(EXTREMES["compute"], SECONDS, WARM_UP)
    assert truth.more_gpus_help


@pytest.mark.parametrize("label", ["healthy", "network", "memory_growth", "idle"])
def test_more_gpus_do_not_help_where_nothing_is_short(label):
    assert not truth_of(EXTREMES[label], SECONDS, WARM_UP).more_gpus_help


def test_causes_that_gain_alike_are_all_true_and_the_fault_is_the_label():
    """A slow gateway takes most of the time that is promised and a slow front end the rest: either mended is enough."""
    slow = replace(HEALTHY.host, admission_seconds=0.5, frontend_cores=16)
    world = replace(HEALTHY, host=slow, gateway=Gateway(delay_seconds=0.5), slo=Slo(ttft_seconds=0.8))
    truth = truth_of(world, SECONDS, WARM_UP)
    assert set(truth.ties) == {"network", "host_cpu"}
    assert truth.label == "network"


def test_what_only_several_things_together_mend_is_a_compound():
    """Tokens wait for the host and for the memory, and either alone leaves them late."""
    slow = replace(HEALTHY.host, step_seconds=0.004)
    world = replace(HEALTHY, host=slow, slo=Slo(ttft_seconds=2.0, tpot_seconds=0.0045))
    truth = truth_of(world, SECONDS, WARM_UP)
    assert truth.compound
    assert {"host_cpu", "memory_bandwidth"} <= set(truth.ties)


def test_where_no_request_can_be_in_time_the_latency_decides():
    """Nobody makes tokens in 0.3 ms, but with faster memory they come nearer to it."""
    truth = truth_of(replace(HEALTHY, slo=Slo(ttft_seconds=2.0, tpot_seconds=0.0003)), SECONDS, WARM_UP)
    assert truth.in_slo_share == 0.0
    assert truth.label == "memory_bandwidth"
    assert not truth.more_gpus_help


def test_the_same_world_has_the_same_truth():
    world = replace(PAIR, workload=replace(CHAT, arrivals_per_second=60.0))
    assert truth_of(world, SECONDS, WARM_UP) == truth_of(world, SECONDS, WARM_UP)
