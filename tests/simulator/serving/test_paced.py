"""The node in real time: servers up, scenarios in turn, readings that any thread may take."""

import asyncio
import threading
import time

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pinchpoint.simulator import SCENARIOS, SimulatedNode, ThreadedNode
from tests.simulator.engine.small import until


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


async def test_every_target_answers_and_says_what_an_operator_would():
    node = SimulatedNode(scenario="healthy")
    assert node.targets() == ()
    await node.start()
    try:
        async with aiohttp.ClientSession() as http:
            for target in node.targets():
                async with http.get(target.url + target.metrics_path) as response:
                    families = {f.name for f in text_string_to_metric_families(await response.text())}
                assert "vllm:num_requests_running" in families
                assert target.facts.max_num_seqs
                replicas = target.facts.data_parallel_size
                assert target.facts.tensor_parallel_size * replicas == len(target.gpus) == 2
        assert len({target.url for target in node.targets()}) == 4
    finally:
        await node.stop()


async def test_scenarios_take_turns_in_the_order_of_their_table():
    clock = Clock()
    node = SimulatedNode(scenario_seconds=10, clock=clock)
    await node.start()
    try:
        seen = [node.scenario]
        for _ in SCENARIOS:
            for _ in range(5):
                clock.now += 2.0
                await asyncio.sleep(0.05)
            seen.append(node.scenario)
        assert seen == [*SCENARIOS, "healthy"]
    finally:
        await node.stop()


async def test_readings_carry_the_callers_clock_and_are_renewed():
    clock = Clock()
    node = SimulatedNode(scenario="throttled_gpu", clock=clock)
    await node.start()
    try:
        first, absences = node.gpus.readings(clock.now)
        assert [reading.gpu for reading in first] == [str(index) for index in range(8)]
        assert absences == ()
        assert all(reading.at == 1000.0 for reading in first)
        clock.now = 1001.0
        await until(lambda: node.gpus.readings(clock.now)[0] is not first)
        second, _ = node.gpus.readings(clock.now)
        assert all(reading.at == 1001.0 for reading in second)
        assert [r.uuid for r in first] == [r.uuid for r in second]
        assert node.host(clock.now).at == 1001.0
        assert node.gpus.report(clock.now).up
        assert node.gpus.gpus_expected == node.gpus.gpus_visible == 8
        assert {link.link for link in node.gpus.links} == {"NV18", "SYS"}
    finally:
        await node.stop()


async def test_a_suspended_machine_does_not_play_the_lost_hours():
    clock = Clock()
    node = SimulatedNode(scenario="slots_exhausted", clock=clock)
    await node.start()
    try:
        before, _ = node.gpus.readings(0)
        clock.now += 36_000
        began = time.monotonic()
        await until(lambda: node.gpus.readings(0)[0] is not before)
        assert time.monotonic() - began < 2
    finally:
        await node.stop()


def test_an_unknown_scenario_is_refused():
    with pytest.raises(ValueError, match="no scenario 'panic'"):
        SimulatedNode(scenario="panic")


async def test_a_node_in_a_thread_answers_and_stops_while_a_client_streams():
    threaded = ThreadedNode(SimulatedNode(scenario="healthy"))
    threaded.start()
    try:
        target = threaded.node.targets()[0]
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4000, "stream": True, "ignore_eos": True}
        async with (
            aiohttp.ClientSession() as http,
            http.post(target.url + "/v1/chat/completions", json=body) as response,
        ):
            assert (await response.content.readline()).startswith(b"data: ")
            began = time.monotonic()
            await asyncio.to_thread(threaded.stop)
            assert time.monotonic() - began < 1.5
    finally:
        threaded.stop()
    assert "simulated node" not in {thread.name for thread in threading.enumerate()}


def test_stopping_a_node_that_never_started_is_no_error():
    ThreadedNode(SimulatedNode()).stop()
