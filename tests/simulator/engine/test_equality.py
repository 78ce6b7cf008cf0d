"""Advancing all decoding requests at once is the same as looking at each of them in each step."""

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
asked = st.lists(
    st.builds(
        dict,
        after=st.sampled_from([0.0, 0.0, 0.003, 0.1, 1.0]),
        prompt=st.integers(1, 700),
        output=st.integers(1, 300),
        front_end=st.sampled_from([0.0, 0.02]),
        prefix=st.sampled_from([None, "system", "chat"]),
        prefix_tokens=st.sampled_from([8, 100, 333, 900]),
        listens=st.booleans(),
    ),
    min_size=1,
    max_size=60,
)
moments = st.lists(
    st.tuples(st.floats(0.001, 1.0), st.sampled_from([1.0, 0.5]), st.booleans(), st.none() | st.integers(0, 59)),
    max_size=8,
)


def requests(asked, hearing=None):
    at = 0.0
    for identity, each in enumerate(asked):
        at += each["after"]
        more = {"prefix": each["prefix"], "prefix_tokens": each["prefix_tokens"] if each["prefix"] else 0}
        if hearing is not None and each["listens"]:
            more["on_token"] = lambda told: hearing[told.identity].append((told.last_token_at, told.generated_tokens))
        yield request(identity, each["prompt"], each["output"], arrived_at=at, queued_at=at + each["front_end"], **more)


@settings(max_examples=100, deadline=None)
@given(changes=specs, asked=asked, moments=moments, seed=st.integers(0, 9))
def test_the_quick_engine_and_the_plain_one_do_the_same_to_the_last_token(changes, asked, moments, seed):
    spec = small_spec(**changes)
    quick, plain = SimulatedEngine(spec, seed), NaiveEngine(spec, seed)
    heard = {identity: [] for identity in range(len(asked))}
    ours, theirs = list(requests(asked, heard)), list(requests(asked))
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
