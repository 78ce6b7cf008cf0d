"""The block pool keeps its books."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from pinchpoint.simulator.engine.blocks import BlockPool


def test_usage_leaves_the_null_block_out():
    pool = BlockPool(40)
    assert pool.usage_ratio == 0.0
    assert pool.allocate(37)
    assert pool.usage_ratio == pytest.approx(37 / 39)
    assert pool.allocate(2)
    assert pool.usage_ratio == 1.0


def test_an_allocation_that_does_not_fit_takes_nothing():
    pool = BlockPool(10)
    assert not pool.allocate(10)
    assert pool.free == 9


def test_a_shared_prefix_is_held_once():
    pool = BlockPool(100)
    assert pool.allocate(10)
    assert pool.publish("system", 4)
    assert pool.allocate(6, "system")
    assert pool.free == 99 - 16


def test_an_unreferenced_prefix_is_free_but_still_cached():
    pool = BlockPool(100)
    pool.allocate(10)
    pool.publish("system", 4)
    pool.release(6, "system")
    assert pool.free == 99
    assert pool.cached_blocks("system") == 4


def test_a_prefix_is_forgotten_when_somebody_needs_the_room():
    pool = BlockPool(100)
    pool.allocate(4)
    pool.publish("system", 4)
    pool.release(0, "system")
    assert pool.allocate(96)
    assert pool.cached_blocks("system") == 0


def test_only_the_first_publishes_a_prefix():
    pool = BlockPool(100)
    pool.allocate(8)
    assert pool.publish("system", 4) == 4
    assert pool.publish("system", 4) == 0


def test_a_prefix_is_forgotten_when_as_much_was_taken_as_was_free_before_it():
    pool = BlockPool(100)
    pool.allocate(4)
    pool.publish("system", 4)
    pool.release(0, "system")
    for _ in range(9):
        pool.allocate(10)
        pool.release(10)
    assert pool.cached_blocks("system") == 4
    pool.allocate(10)
    assert pool.cached_blocks("system") == 0
    assert pool.free == 89


def test_a_prefix_grows_when_one_who_holds_it_has_more():
    pool = BlockPool(100)
    pool.allocate(10)
    pool.publish("chat", 4)
    assert pool.publish("chat", 9, referenced=True) == 5
    assert pool.publish("chat", 9, referenced=True) == 0
    assert pool.publish("chat", 20) == 0
    pool.release(1, "chat")
    assert (pool.free, pool.cached_blocks("chat")) == (99, 9)


class Pool(RuleBasedStateMachine):
    """Whatever is taken and given back, free + held is the whole, and cached prefixes fit into what they are in."""

    holdings = Bundle("holdings")

    def __init__(self):
        super().__init__()
        self.pool = BlockPool(65)
        self.own = 0
        self.references = {}

    @rule(target=holdings, blocks=st.integers(0, 30), prefix=st.sampled_from([None, "a", "b"]))
    def allocate(self, blocks, prefix):
        if prefix is not None and not self.pool.cached_blocks(prefix):
            prefix = None
        if not self.pool.allocate(blocks, prefix):
            return (0, None)
        self.own += blocks
        if prefix is not None:
            self.references[prefix] = self.references.get(prefix, 0) + 1
        return (blocks, prefix)

    @rule(target=holdings, holding=consumes(holdings), prefix=st.sampled_from(["a", "b"]))
    def publish(self, holding, prefix):
        blocks, held = holding
        if held is None and blocks >= 5 and self.pool.publish(prefix, 5):
            self.own -= 5
            self.references[prefix] = 1
            return (blocks - 5, prefix)
        return holding

    @rule(target=holdings, holding=consumes(holdings), more=st.integers(1, 8))
    def grow(self, holding, more):
        blocks, held = holding
        if held is None or more > blocks:
            return holding
        given = self.pool.publish(held, self.pool.cached_blocks(held) + more, referenced=True)
        self.own -= given
        return (blocks - given, held)

    @rule(holding=consumes(holdings))
    def release(self, holding):
        blocks, prefix = holding
        self.pool.release(blocks, prefix)
        self.own -= blocks
        if prefix is not None:
            self.references[prefix] -= 1

    @invariant()
    def free_and_held_are_the_whole(self):
        shared = sum(self.pool.cached_blocks(name) for name, count in self.references.items() if count)
        assert self.pool.free >= 0
        assert self.pool.free + self.own + shared == 64

    @invariant()
    def cached_and_unreferenced_blocks_are_among_the_free(self):
        idle = sum(self.pool.cached_blocks(name) for name in ("a", "b") if not self.references.get(name))
        assert idle <= self.pool.free


TestPool = Pool.TestCase
