"""The engine conserves what it handles, and behaves as continuous batching does."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.simulator.engine.loop import SimulatedEngine
from tests.simulator.engine.small import crowd, request, small_spec, told


def play(engine, asked, until=60.0):
    for each in asked:
        engine.submit(each)
    engine.run_until(until)
    return engine


def assert_books_balance(engine):
    batcher, ledger = engine.batcher, engine.ledger
    pool = batcher.pool
    shared = {each.prefix for each in batcher.running if each.shared_blocks}
    held = sum(map(batcher.own_blocks, batcher.running)) + sum(map(pool.cached_blocks, shared))
    assert 0 <= pool.free < pool.total
    assert held + pool.free == pool.total - 1
    assert len(batcher.running) <= batcher.max_num_seqs
    assert all(each.computed_tokens == each.shared_blocks == 0 for each in batcher.waiting)
    assert ledger.ttft.count >= sum(ledger.success.values()) == ledger.e2e.count
    assert ledger.inter_token.count == ledger.generation_tokens - ledger.ttft.count
    assert 0 <= ledger.cached_tokens <= ledger.prefix_hits <= ledger.prefix_queries


def test_one_seed_gives_one_run():
    runs = [told(play(SimulatedEngine(small_spec(), seed), crowd(60, 20)).ledger) for seed in (1, 1, "2/replica 1")]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_how_often_one_looks_changes_nothing():
    at_once, often = (play(SimulatedEngine(small_spec(), 3), crowd(100, 8), 0.0) for _ in range(2))
    at_once.run_until(20)
    for tick in range(1, 2001):
        often.run_until(tick / 100)
    assert told(at_once.ledger) == told(often.ledger)
    assert at_once.work().flops == pytest.approx(often.work().flops)
    assert (at_once.running, at_once.waiting) == (often.running, often.waiting)


def test_tokens_out_are_tokens_asked_for():
    asked = [request(identity=i, prompt=50 + i, output=1 + i % 40) for i in range(100)]
    engine = play(SimulatedEngine(small_spec()), asked)
    assert all(each.finished for each in asked)
    assert engine.ledger.prompt_tokens == sum(each.prompt_tokens for each in asked)
    assert engine.ledger.generation_tokens == sum(each.output_tokens for each in asked)
    assert engine.ledger.generation_size.sum == engine.ledger.generation_tokens
    assert engine.batcher.pool.usage_ratio == 0.0


def test_a_long_prompt_is_prefilled_in_chunks_of_the_token_budget():
    engine = SimulatedEngine(small_spec(max_num_batched_tokens=256))
    engine.submit(request(prompt=1000, output=1))
    steps = 0
    while not engine.ledger.ttft.count:
        engine.run_until(engine.next_event_at)
        steps += 1
    assert steps == 1 + 4  # the look that starts it, and ceil(1000 / 256) steps


def test_admission_is_first_come_first_served_and_stops_at_max_num_seqs():
    engine = SimulatedEngine(small_spec(max_num_seqs=2))
    asked = [request(identity=i) for i in range(5)]
    for each in asked:
        engine.submit(each)
    engine.run_until(0.0)
    assert list(engine.batcher.running) == asked[:2]
    assert list(engine.batcher.waiting) == asked[2:]


def test_when_blocks_run_out_the_youngest_is_preempted_and_recomputed():
    engine = SimulatedEngine(small_spec(num_gpu_blocks_override=66))  # 65 usable blocks: 1040 tokens
    old, young = request(1, prompt=500, output=200), request(2, prompt=480, output=200)
    engine.submit(old)
    engine.submit(young)
    engine.run_until(60)
    assert (old.preemptions, young.preemptions) == (0, 1)
    assert engine.ledger.preemptions == 1
    assert old.finished
    assert young.finished
    assert young.generated_tokens == 200
    assert engine.ledger.prompt_tokens == 980  # recomputation is not counted as prompt


def test_a_shared_prefix_is_found_once_it_has_been_computed():
    engine = SimulatedEngine(small_spec())
    first, second = (request(i, prompt=300, prefix="system", prefix_tokens=250) for i in (1, 2))
    engine.submit(first)
    engine.run_until(5)
    engine.submit(second)
    engine.run_until(10)
    assert (first.cached_tokens, second.cached_tokens) == (0, 240)  # 15 whole blocks of 16
    assert engine.ledger.prefix_queries == 600
    assert engine.ledger.prefix_hits == 240


def test_a_chat_that_goes_on_finds_what_it_said_and_heard():
    engine = SimulatedEngine(small_spec())
    first = request(1, prompt=300, output=100, prefix="chat", prefix_tokens=400)
    second = request(2, prompt=450, output=10, prefix="chat", prefix_tokens=460)
    play(engine, [first], until=5)
    play(engine, [second], until=10)
    assert second.cached_tokens == 384  # 24 whole blocks of the 399 tokens that were computed
    assert engine.batcher.pool.usage_ratio == 0.0


def test_without_prefix_caching_nothing_is_looked_up():
    engine = SimulatedEngine(small_spec(enable_prefix_caching=False))
    for identity in (1, 2):
        play(engine, [request(identity, prompt=300, prefix="system", prefix_tokens=250)], until=identity * 5)
    assert engine.ledger.prefix_queries == engine.ledger.cached_tokens == 0


def test_an_abort_frees_blocks_and_is_counted_as_nothing_but_tokens():
    engine = SimulatedEngine(small_spec())
    leaving, queued = request(1, output=500), request(2)
    engine.submit(leaving)
    engine.run_until(0.5)
    assert engine.batcher.pool.usage_ratio > 0
    engine.submit(queued)
    engine.abort(leaving)
    engine.abort(queued)
    assert engine.batcher.pool.usage_ratio == 0.0
    engine.run_until(5)
    assert engine.running == engine.waiting == 0
    assert sum(engine.ledger.success.values()) == 0
    assert engine.ledger.generation_tokens == leaving.generated_tokens > 0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    blocks=st.integers(65, 300),
    max_num_seqs=st.integers(1, 64),
    budget=st.integers(64, 2048),
    aborts=st.lists(st.integers(0, 63), max_size=4),
)
def test_whatever_is_asked_the_books_balance(seed, blocks, max_num_seqs, budget, aborts):
    spec = small_spec(num_gpu_blocks_override=blocks, max_num_seqs=max_num_seqs, max_num_batched_tokens=budget)
    engine = SimulatedEngine(spec, seed)
    for each in crowd(60, 50, seed, prompt=(1, 700), prefix="system", prefix_tokens=seed):
        engine.submit(each)
    for second in range(1, 6):
        engine.run_until(second * 0.6)
        assert_books_balance(engine)
        for pick in aborts[second - 1 : second]:
            everyone = [*engine.batcher.running, *engine.batcher.waiting]
            if everyone:
                engine.abort(everyone[pick % len(everyone)])
                assert_books_balance(engine)
