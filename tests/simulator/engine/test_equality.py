"""Advancing all decoding requests at once is the same as looking at each of them in each step."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.physics import CONFIGS
from pinchpoint.simulator.engine.loop import SimulatedEngine
from tests.simulator.engine.naive import NaiveEngine
from tests.simulator.engine.small import request, small_spec, told

specs = st.one_of(
    st.builds(
        dict,
        num_gpu_blocks_override=st.integers(65, 300),
        max_num_seqs=st.integers(1, 64),
        max_num_batched_tokens=st.integers(64, 2048),
        enable_prefix_caching=st.booleans(),
    ),
    st.builds(
        dict,
        model_config=st.just(CONFIGS["Qwen/Qwen3.5-35B-A3B"]),
        num_gpu_blocks_override=st.integers(1000, 2000),
        max_num_batched_tokens=st.integers(256, 512),
    ),
)
moments = st.lists(
    st.tuples(st.floats(0.001, 1.0), st.sampled_from([1.0, 0.5]), st.booleans(), st.none() | st.integers(0, 79)),
    max_size=8,
)


def requests(number, per_second, seed, hearing=None):
    """A crowd, some of whom share prefixes, whole prompts among them, and some of whom listen if ``hearing``."""
    chance, at = Random(seed), 0.0
    for identity in range(number):
        at += chance.choice([0.0, chance.expovariate(per_second)])
        more = {"queued_at": at + chance.choice([0.0, 0.02])}
        if chance.random() < 0.5:
            more |= {"prefix": chance.choice(["system", "chat"]), "prefix_tokens": chance.choice([8, 100, 333, 900])}
        if chance.random() < 0.2 and hearing is not None:
            more["on_token"] = lambda told: hearing[told.identity].append((told.last_token_at, told.generated_tokens))
        prompt = chance.choice([16 * chance.randint(1, 40), chance.randint(1, 700)])
        yield request(identity, prompt, chance.randint(1, 300), arrived_at=at, **more)


@settings(max_examples=60, deadline=None)
@given(
    changes=specs,
    number=st.integers(1, 80),
    per_second=st.sampled_from([2.0, 20.0, 200.0]),
    moments=moments,
    seed=st.integers(0, 10_000),
)
def test_the_quick_engine_and_the_plain_one_do_the_same_to_the_last_token(changes, number, per_second, moments, seed):
    spec = small_spec(**changes)
    quick, plain = SimulatedEngine(spec, seed), NaiveEngine(spec, seed)
    heard = {identity: [] for identity in range(number)}
    ours, theirs = list(requests(number, per_second, seed, heard)), list(requests(number, per_second, seed))
    for mine, other in zip(ours, theirs, strict=True):
        quick.submit(mine)
        plain.submit(other)
    now = 0.0
    for seconds, clock_ratio, stalled, leaving in [*moments, (600.0, 1.0, False, None)]:
        for engine in (quick, plain):
            engine.conditions.clock_ratio, engine.conditions.stalled = clock_ratio, stalled
        now += seconds
        quick.run_until(now)
        plain.run_until(now)
        if leaving is not None and leaving < len(ours) and not theirs[leaving].finished:
            quick.abort(ours[leaving])
            plain.abort(leaving)
        assert quick.batcher.pool.free == plain.pool.free
        assert [each.identity for each in quick.batcher.running] == [each.request.identity for each in plain.running]
    exact, sums = told(quick.ledger)
    assert exact == told(plain.ledger)[0]
    assert sums == pytest.approx(told(plain.ledger)[1])
    assert quick.work().gpu_seconds == pytest.approx(plain.busy_seconds)
    for mine, other in zip(ours, theirs, strict=True):
        for name in ("finished", "first_token_at", "last_token_at", "generated_tokens", "preemptions", "cached_tokens"):
            assert getattr(mine, name) == getattr(other, name), name
        if mine.on_token is not None:
            times = plain.everybody[other.identity].token_times
            assert heard[mine.identity] == [(at, position) for position, at in enumerate(times, 1)]
