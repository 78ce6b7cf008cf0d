"""CPUs under the engines: quota, cores, front ends, slow work, and what is seen of each."""

from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from pinchpoint.simulator import Lengths, Workload, play
from pinchpoint.simulator.node.host import FrontEnd
from pinchpoint.simulator.world import Host
from tests.simulator.node.worlds import history, readings, small_world

WRITING = Workload(clients=8, prompt=Lengths(median=100), output=Lengths(median=400))


def played(host, **changes):
    """A busy service on that host: the last twenty seconds of host and card, and the pace of tokens."""
    world = small_world(host=host, workload=WRITING, **changes)
    seen = history(world, 30, lambda service: (service.host, readings(service)["0"], service.engines[0].ledger))
    hosts, cards, ledgers = zip(*seen[10:], strict=True)
    return hosts, cards, ledgers[-1].inter_token.sum / ledgers[-1].inter_token.count


def mean(seen, field):
    return fmean(getattr(reading, field) for reading in seen)


def test_a_quota_below_what_spins_throttles_slows_and_lets_the_card_rest():
    _, rested, usual = played(Host())
    hosts, cards, slowed = played(Host(quota_cores=1.0))
    assert mean(hosts, "cpu_throttled_ratio") > 0.85
    assert mean(hosts, "engine_cpu_cores") == pytest.approx(1.0, rel=0.05)
    assert mean(hosts, "cpu_pressure_ratio") > 0.3
    # Two threads spin, so they run half of each period: at most a step more is in flight when they stop.
    assert 1.4 * usual < slowed < 2.0 * usual
    assert mean(cards, "utilization_ratio") < 0.75 * mean(rested, "utilization_ratio")


def test_under_a_quota_tokens_come_in_bursts():
    service = play(small_world(host=Host(quota_cores=0.5), workload=WRITING), 30.0)
    tally = service.engines[0].ledger.inter_token
    shares = dict(zip(tally.bounds, tally.counts, strict=False))
    assert shares[0.01] > 0.5 * tally.count  # the usual pace, while the threads run
    assert shares[0.1] > 0.1 * tally.count  # and a stop of 75 ms


def test_a_quota_that_suffices_is_no_trouble():
    hosts, _, pace = played(Host(quota_cores=8.0))
    assert max(host.cpu_throttled_ratio for host in hosts) == 0.0
    assert pace == played(Host())[2]


def test_without_a_quota_there_are_no_periods_to_count():
    assert played(Host())[0][-1].cpu_throttled_ratio is None


def test_too_few_cores_show_as_pressure_and_not_as_throttling():
    _, _, usual = played(Host())
    hosts, _, slowed = played(Host(cpu_count=4, other_cores=3.0))
    assert mean(hosts, "cpu_pressure_ratio") > 0.5
    assert mean(hosts, "cpu_utilization_ratio") > 0.95
    assert hosts[-1].cpu_throttled_ratio is None
    assert 1.05 * usual < slowed < 1.5 * usual


def test_a_slow_single_thread_is_a_card_that_rests_and_nothing_else():
    _, usual, _ = played(Host())
    hosts, cards, _ = played(Host(step_seconds=0.03))
    assert mean(cards, "utilization_ratio") < 0.4
    assert mean(cards, "power_watts") < 0.6 * mean(usual, "power_watts")
    assert mean(hosts, "cpu_pressure_ratio") < 0.05
    assert mean(hosts, "cpu_utilization_ratio") < 0.1


def test_each_rank_and_each_engine_core_spins():
    cores = [
        played(Host(admission_seconds=0.0), engine={"gpus": gpus}, replicas=replicas)[0][-1].engine_cpu_cores
        for gpus, replicas in ((("0",), 1), (("0", "1"), 1), (("0", "1"), 3))
    ]
    assert cores == pytest.approx([2, 3, 9], rel=0.04)


def test_a_front_end_works_on_one_request_after_the_other():
    front = FrontEnd(Host(admission_seconds=0.2))
    assert [front.done_at(1.0, 1.0), front.done_at(1.1, 1.0), front.done_at(5.0, 0.5)] == [1.2, 1.4, 5.4]
    wide = FrontEnd(Host(admission_seconds=0.2, frontend_cores=2))
    assert [wide.done_at(1.0, 1.0) for _ in range(3)] == [1.2, 1.2, 1.4]


def test_a_front_end_is_busy_when_it_works_and_not_when_it_is_asked():
    front, random = FrontEnd(Host(admission_seconds=0.25, frontend_cores=2)), Random(3)
    for arrived in sorted(random.uniform(0.0, 10.0) for _ in range(200)):
        front.done_at(arrived, 1.0)
    busy = [front.busy_seconds(second, second + 1.0) for second in range(60)]
    assert sum(busy) == pytest.approx(200 * 0.25)
    assert max(busy) <= 2.0 + 1e-9
    assert busy[40] == 0.0


def test_a_slow_front_end_is_in_ttft_and_not_in_queue_time():
    slow = Host(admission_seconds=0.3)
    service = play(small_world(host=slow, workload=replace(WRITING, clients=6, output=Lengths(median=20))), 60.0)
    ledger = service.engines[0].ledger
    assert ledger.ttft.sum / ledger.ttft.count > 0.8
    assert ledger.queue.sum / ledger.queue.count < 0.02
