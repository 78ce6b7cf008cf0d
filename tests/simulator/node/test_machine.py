"""A node whose scenario changes under the same engines."""

import time

import pytest

from pinchpoint.simulator import SimulatedMachine

CHAT, RAG, CODE = "chat-llama3.3-70b", "rag-qwen2.5-14b", "code-llama3.1-8b"


def test_a_change_ends_the_old_story_at_once_and_counters_go_on():
    machine = SimulatedMachine(1, "memory_wall")
    machine.advance_to(30)
    (chat,), (rag,) = (machine.services[name].engines for name in (CHAT, RAG))
    tokens = chat.ledger.generation_tokens
    machine.use("idle")
    assert chat.running == chat.waiting == 0
    machine.advance_to(60)
    assert chat.ledger.generation_tokens == tokens
    machine.use("slots_exhausted")
    machine.advance_to(80)
    assert rag.running == rag.spec.max_num_seqs
    assert rag.waiting > 10
    assert chat.waiting == 0
    assert chat.ledger.generation_tokens > tokens


def test_a_service_that_a_change_does_not_touch_goes_on_as_if_nothing_were():
    changed, quiet = SimulatedMachine(1, "memory_wall"), SimulatedMachine(1, "healthy")
    for machine in (changed, quiet):
        machine.advance_to(20)
    changed.use("buffering_gateway")
    for machine in (changed, quiet):
        machine.advance_to(40)
    tokens = [machine.services[RAG].engines[0].ledger.generation_tokens for machine in (changed, quiet)]
    assert tokens[0] == tokens[1] > 0


def test_the_host_is_that_of_all_and_tells_the_worst():
    machine = SimulatedMachine(1, "host_starved")
    machine.advance_to(10)
    services = [service.host for service in machine.services.values()]
    assert machine.host.engine_cpu_cores == pytest.approx(sum(host.engine_cpu_cores for host in services), abs=0.02)
    assert machine.host.cpu_throttled_ratio == machine.services[CODE].host.cpu_throttled_ratio > 0.85


def test_no_two_cards_are_the_same():
    cards = SimulatedMachine(1, "healthy").gpu_readings(0.0)
    for field in ("uuid", "pci_bus_id", "energy_joules_total"):
        assert len({getattr(card, field) for card in cards}) == 8


def test_every_card_is_told_once_and_links_are_within_a_service():
    machine = SimulatedMachine(1, "healthy")
    assert [reading.gpu for reading in machine.gpu_readings(0.0)] == [str(index) for index in range(8)]
    assert {(link.gpu, link.peer) for link in machine.links} == {("0", "1"), ("2", "3"), ("4", "5"), ("6", "7")}


def test_a_node_that_is_played_for_long_holds_open_requests_only():
    machine = SimulatedMachine(1, "slots_exhausted")
    machine.advance_to(300)
    assert max(len(service.sent) for service in machine.services.values()) < 120


def test_an_unknown_scenario_is_refused_by_name():
    with pytest.raises(ValueError, match="no scenario 'panic': choose one of healthy"):
        SimulatedMachine(1, "panic")


def test_the_busiest_scenario_runs_fifty_times_faster_than_time():
    machine, began = SimulatedMachine(1, "uneven_replicas"), time.process_time()
    machine.advance_to(60)
    assert 60 / (time.process_time() - began) > 50
