"""What NVML would say of the cards."""

from dataclasses import replace
from statistics import fmean

import pytest

from pinchpoint.physics import GPUS
from pinchpoint.simulator import Lengths, Service, Workload, play
from tests.simulator.node.worlds import history, readings, small_world

CROWD = Workload(clients=40, prompt=Lengths(median=800), output=Lengths(median=150))
READING = Workload(clients=40, prompt=Lengths(median=3000, high=3500), output=Lengths(median=3))
PAIR = {"gpus": ("0", "1"), "num_gpu_blocks_override": 4000}


def busy(engine=None, workload=CROWD, **changes):
    """The cards of a service in full swing."""
    return readings(play(small_world(engine=engine, workload=workload, **changes), 15.0))


@pytest.mark.parametrize("name", sorted(GPUS))
def test_profiling_ratios_are_told_by_hopper_and_later_only(name):
    newer = any(word in name for word in ("H100", "H200", "H800", "H20", "GH200", "B200", "GB200", "B300"))
    card = readings(Service(small_world(engine={"gpu": GPUS[name]})))["0"]
    told = {card.sm_active_ratio is not None, card.tensor_active_ratio is not None, card.dram_active_ratio is not None}
    assert told == {newer}
    assert card.utilization_ratio is not None
    assert card.power_limit_watts == GPUS[name].tdp_watts


def test_ranks_talk_over_the_link_that_they_have():
    near, far = busy({**PAIR, "link": "NV18"})["0"], busy({**PAIR, "link": "SYS"})["0"]
    assert near.nvlink_transmit_bytes_per_second > 1e9
    assert near.pcie_transmit_bytes_per_second < 1e8
    assert far.nvlink_transmit_bytes_per_second is None
    assert far.pcie_transmit_bytes_per_second > 1e9
    alone = busy()["0"]
    assert alone.nvlink_transmit_bytes_per_second is None
    assert alone.pcie_transmit_bytes_per_second < 1e8


def test_a_card_that_waits_for_its_peer_is_busy_and_does_little():
    near, far = (busy({**PAIR, "link": link}, READING)["0"] for link in ("NV18", "SYS"))
    assert min(near.utilization_ratio, far.utilization_ratio) > 0.9
    assert far.sm_active_ratio < 0.7 * near.sm_active_ratio
    assert far.power_watts < 0.7 * near.power_watts


def test_nvlink_counters_are_the_sum_of_what_was_sent():
    world = small_world(engine={**PAIR, "link": "NV18"}, workload=CROWD)
    seen = history(world, 20, lambda service: (readings(service)["0"], service.engines[0].work()))
    (before, sent_before), (after, sent_after) = seen[4], seen[-1]
    sent = sent_after.nvlink_communication_bytes - sent_before.nvlink_communication_bytes
    assert after.nvlink_transmit_bytes_total - before.nvlink_transmit_bytes_total == pytest.approx(sent)


def test_a_slice_of_a_card_has_no_utilization_of_its_own():
    h100 = GPUS["NVIDIA H100 80GB HBM3"]
    half = replace(h100, name="NVIDIA H100 80GB HBM3 MIG 3g.40gb", memory_bytes=h100.memory_bytes / 2)
    card = busy({"gpu": half, "mig": True})["0"]
    assert card.utilization_ratio is None
    assert card.memory_controller_utilization_ratio is None
    assert card.memory_total_bytes == h100.memory_bytes / 2
    assert card.sm_active_ratio > 0.5


def test_a_card_at_its_power_limit_says_so_clocks_a_little_lower_and_is_well():
    seen = history(small_world(workload=READING), 20, lambda service: readings(service)["0"])[5:]
    capped = [card for card in seen if card.throttle_active["sw_power_cap"]]
    assert len(capped) > 10
    for card in capped:
        assert card.power_watts == pytest.approx(card.power_limit_watts, rel=0.02)
        assert 0.75 < card.clock_hertz["sm"] / card.clock_max_hertz["sm"] < 1.0
        assert card.throttle_active["hw_slowdown"] == 0


def test_used_memory_is_flat_whatever_the_load():
    used = history(small_world(workload=CROWD), 20, lambda service: readings(service)["0"].memory_used_bytes)
    idle = history(small_world(workload=Workload()), 5, lambda service: readings(service)["0"].memory_used_bytes)
    assert len({*used, *idle}) == 1
    assert used[0] == pytest.approx(0.92 * GPUS["NVIDIA H100 80GB HBM3"].memory_bytes, rel=0.02)


def test_an_engine_asleep_has_given_its_memory_back():
    card = readings(play(small_world(workload=Workload(), asleep=True), 5.0))["0"]
    assert card.memory_used_bytes < 0.1 * card.memory_total_bytes
    assert card.utilization_ratio == 0.0


def test_energy_is_the_integral_of_power():
    cards = history(small_world(workload=CROWD), 60, lambda service: readings(service)["0"])
    joules = cards[-1].energy_joules_total - cards[9].energy_joules_total
    assert joules == pytest.approx(50 * fmean(card.power_watts for card in cards[10:]), rel=0.05)


def test_a_busy_card_is_warmer_than_an_idle_one():
    hot = history(small_world(workload=READING), 60, lambda service: readings(service)["0"])[-1]
    cool = readings(play(small_world(workload=Workload()), 60.0))["0"]
    assert hot.temperature_celsius["gpu"] > cool.temperature_celsius["gpu"] + 20
    assert cool.clock_hertz["sm"] < 0.5 * cool.clock_max_hertz["sm"]
