"""What the node around an engine sees of it and does to it."""

from math import inf

import pytest

from pinchpoint.simulator.engine.loop import SimulatedEngine
from tests.simulator.engine.small import crowd, request, small_spec


def test_an_engine_that_nobody_asks_has_no_next_event():
    engine = SimulatedEngine(small_spec(), started_at=5.0)
    engine.run_until(7.0)
    assert engine.now == 7.0
    assert engine.next_event_at == inf
    engine.submit(request(arrived_at=7.0, queued_at=7.5))
    assert engine.next_event_at == 7.5


def test_time_at_the_front_end_is_ttft_and_not_queue_time():
    engine = SimulatedEngine(small_spec())
    asked = request(arrived_at=1.0, queued_at=1.8)
    engine.submit(asked)
    engine.run_until(1.7)
    assert engine.waiting == 0
    engine.run_until(10)
    assert asked.scheduled_at == 1.8
    assert engine.ledger.queue.sum == 0.0
    assert engine.ledger.ttft.sum == asked.first_token_at - 1.0 > 0.8
    assert engine.ledger.e2e.sum == asked.last_token_at - 1.0


def test_a_request_that_is_submitted_late_queues_now():
    engine = SimulatedEngine(small_spec())
    engine.run_until(3.0)
    asked = request(arrived_at=1.0)
    engine.submit(asked)
    engine.run_until(9.0)
    assert asked.scheduled_at == 3.0
    assert asked.first_token_at < 3.1
    assert engine.ledger.ttft.sum > 2.0


def test_a_request_that_does_not_fit_the_model_is_refused():
    with pytest.raises(ValueError, match="longer than max_model_len 1024"):
        SimulatedEngine(small_spec()).submit(request(prompt=1000, output=25))


def test_one_who_waits_for_an_answer_can_ask_again_at_its_moment():
    engine, other = SimulatedEngine(small_spec()), SimulatedEngine(small_spec())
    first, second = request(1, output=20), request(2, output=30)
    engine.submit(first)
    engine.submit(second)
    engine.run_until(60, stop_on_finish=True)
    assert first.finished
    assert engine.now == first.last_token_at < 1
    other.run_until(engine.now)
    other.submit(request(3, arrived_at=engine.now))
    engine.run_until(60)
    other.run_until(60)
    assert second.finished
    assert other.ledger.e2e.count == 1


def test_an_answer_calls_back_and_the_caller_may_ask_at_once():
    asked = []

    def again(done, now):
        assert done.last_token_at == now
        if len(asked) < 5:
            asked.append(request(len(asked), arrived_at=now + 0.1, on_finish=again))
            engine.submit(asked[-1])

    engine = SimulatedEngine(small_spec())
    engine.submit(request(on_finish=again))
    engine.run_until(60)
    assert [each.finished for each in asked] == [True] * 5
    assert engine.ledger.e2e.count == 6


def test_one_who_listens_hears_each_token_when_it_is_ready():
    heard = []
    engine = SimulatedEngine(small_spec())
    engine.submit(request(1, output=40, on_token=lambda r: heard.append((r.generated_tokens, engine.now, r.finished))))
    engine.submit(request(2, output=300))
    engine.run_until(60)
    assert [count for count, _, _ in heard] == list(range(1, 41))
    assert [finished for _, _, finished in heard] == [False] * 39 + [True]
    assert sorted({at for _, at, _ in heard}) == [at for _, at, _ in heard]


def test_who_hangs_up_while_others_are_told_is_told_nothing_more():
    engine = SimulatedEngine(small_spec())
    silent, heard = [], []
    both = [request(i, output=20, on_finish=lambda r, _: silent.append(r), on_token=heard.append) for i in (1, 2)]
    both[0].on_token = lambda _: engine.abort(both[1]) if both[0].generated_tokens == 5 else None
    for each in both:
        engine.submit(each)
    engine.run_until(60)
    assert silent == [both[0]]
    assert len(heard) == 4


def test_a_stalled_engine_begins_no_step_and_its_gauges_freeze_while_requests_queue():
    engine = SimulatedEngine(small_spec())
    for each in crowd(100, 20):
        engine.submit(each)
    engine.run_until(2.0)
    shown = engine.running, engine.waiting, engine.kv_usage_ratio
    engine.conditions.stalled = True
    engine.run_until(2.2)
    tokens, open_requests = engine.ledger.generation_tokens, engine.open_requests
    engine.run_until(12.0)
    assert (engine.running, engine.waiting, engine.kv_usage_ratio) == shown
    assert engine.ledger.generation_tokens == tokens
    assert engine.open_requests == open_requests
    assert len(engine.batcher.waiting) > 50
    engine.conditions.stalled = False
    engine.run_until(60.0)
    assert engine.open_requests == 0
    assert engine.ledger.e2e.count == 100
    assert sum(engine.ledger.inter_token.counts[-5:-3]) > 0  # 7.5 to 20 s: who was in the midst of an answer
