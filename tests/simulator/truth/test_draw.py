"""A seed makes the same plausible world each time, and many seeds make all kinds."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinchpoint.simulator.truth import world_of
from pinchpoint.simulator.truth.stories import STORIES


@pytest.fixture(scope="module")
def worlds():
    return [world_of(seed) for seed in range(400)]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_a_seed_makes_one_world(seed):
    assert world_of(seed) == world_of(seed)


def test_every_story_comes_about_as_often_as_any_other(worlds):
    told = Counter(world.story for world in worlds)
    assert set(told) == set(STORIES)
    assert min(told.values()) > 0.3 * len(worlds) / len(STORIES)


def test_there_are_cards_models_links_and_layouts_of_all_kinds(worlds):
    engines = [world.engine for world in worlds]
    assert len({engine.gpu.name for engine in engines if not engine.mig}) == 9
    assert len({engine.model for engine in engines}) >= 13
    assert {engine.tensor_parallel_size for engine in engines} == {1, 2, 4, 8}
    assert {engine.quantization for engine in engines} == {None, "fp8", "int4"}
    assert {"NV18", "NV12", "NV8", "PIX", "PXB", "PHB", "NODE", "SYS"} <= {engine.link for engine in engines}
    assert any(engine.mig for engine in engines)
    assert {1, 2, 3, 4} <= {world.replicas for world in worlds}


def test_nobody_has_promised_what_nobody_keeps(worlds):
    for world in worlds:
        assert 0.25 <= world.slo.ttft_seconds <= 5.0
        assert 0.001 <= world.slo.tpot_seconds <= 0.1


def test_replicas_fit_on_a_node(worlds):
    assert all(world.replicas * world.engine.tensor_parallel_size <= 8 for world in worlds)
