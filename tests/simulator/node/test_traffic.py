"""Who asks what, when."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, pstdev

import pytest

from pinchpoint.physics import GPUS
from pinchpoint.simulator import Lengths, Workload, play
from pinchpoint.simulator.node.traffic import Traffic
from tests.simulator.node.worlds import FEW, small_world

QUICK, SLOW = {}, {"gpu": GPUS["NVIDIA A10"], "num_gpu_blocks_override": 400}


def asked(world, seconds=60.0):
    sent = play(world, seconds).sent
    return [(each.sent_at, each.request.prompt_tokens, each.request.output_tokens) for each in sent]


def arrivals(workload, number=4000):
    traffic = Traffic("any", workload, max_model_len=4096)
    return [traffic.pop().arrived_at for _ in range(number)]


def variation(times):
    gaps = [after - before for before, after in pairwise(times)]
    return pstdev(gaps) / fmean(gaps)


def test_the_same_is_asked_at_the_same_times_whatever_the_engine():
    assert asked(small_world(engine=SLOW)) == asked(small_world(engine=QUICK)) == asked(small_world(replicas=2))


def test_a_client_asks_the_same_in_the_same_order_and_sooner_where_the_answers_come_sooner():
    workload = Workload(clients=6, think_seconds=0.5, output=Lengths(median=60))
    questions = []
    for engine in (QUICK, SLOW):
        by_client = defaultdict(list)
        for sent in play(small_world(engine=engine, workload=workload), 60.0).sent:
            by_client[sent.request.source.name].append((sent.request.prompt_tokens, sent.request.output_tokens))
        questions.append(by_client)
    quick, slow = questions
    assert quick.keys() == slow.keys()
    assert all(len(slow[name]) < len(quick[name]) for name in quick)
    assert all(quick[name][: len(slow[name])] == slow[name] for name in slow)


@pytest.mark.parametrize("burstiness", [1.0, 3.0])
def test_arrivals_have_the_rate_and_the_variation_that_was_asked_for(burstiness):
    times = arrivals(replace(FEW, burstiness=burstiness))
    assert len(times) / times[-1] == pytest.approx(4.0, rel=0.1)
    assert variation(times) == pytest.approx(burstiness, rel=0.15)


def test_a_rate_that_swings_is_high_in_the_first_half_of_its_period_and_low_in_the_second():
    times = arrivals(replace(FEW, swing_ratio=0.8, swing_period_seconds=100.0))
    up = sum(time % 100.0 < 50.0 for time in times)
    down = len(times) - up
    # A sine's halves lie 2/pi of its height above and below the mean.
    assert up / down == pytest.approx((1 + 0.51) / (1 - 0.51), rel=0.15)


def test_no_client_has_two_questions_open():
    service = play(small_world(workload=Workload(clients=5, think_seconds=0.0), engine={"max_num_seqs": 2}), 30.0)
    assert sum(not sent.request.finished for sent in service.sent) == 5
    assert service.engines[0].running + service.engines[0].waiting == 5


def test_a_talk_grows_and_is_found_in_the_cache():
    workload = Workload(clients=2, turns=5, prompt=Lengths(median=200), output=Lengths(median=100))
    service = play(small_world(workload=workload), 60.0)
    talk = [sent.request for sent in service.sent if sent.request.prefix == "client 1.0, talk 1"]
    assert len(talk) == 5
    for before, after in pairwise(talk):
        said = before.prompt_tokens + before.output_tokens
        assert after.prompt_tokens > said
        assert said - 2 * 16 < after.cached_tokens <= said
    ledger = service.engines[0].ledger
    assert 0.4 < ledger.prefix_hits / ledger.prefix_queries < 0.8


def test_a_system_prompt_is_shared_by_as_many_as_was_asked_for():
    workload = replace(FEW, prefixes=3, prefix_tokens=512, prefix_share=0.75)
    requests = [sent.request for sent in play(small_world(workload=workload), 60.0).sent]
    sharing = [request for request in requests if request.prefix is not None]
    assert len(sharing) / len(requests) == pytest.approx(0.75, abs=0.1)
    assert len({request.prefix for request in sharing}) == 3
    assert fmean(request.cached_tokens for request in sharing) > 0.9 * 512


def test_no_request_is_longer_than_the_model_can_read():
    prompt, output = Lengths(median=900, sigma=1.0, high=9000), Lengths(median=900)
    endless = Workload(clients=3, turns=50, prompt=prompt, output=output)
    requests = [sent.request for sent in play(small_world(workload=endless), 120.0).sent]
    assert max(request.prompt_tokens + request.output_tokens for request in requests) <= 4096
