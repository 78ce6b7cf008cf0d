"""A seed makes a world: random in everything, and plausible."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from pinchpoint.simulator.truth.rate import demanded, expected
from pinchpoint.simulator.truth.relax import RESOURCES, relaxed
from pinchpoint.simulator.truth.stories import STORIES, UnfitError, with_oddities
from pinchpoint.simulator.world import World

_FEWEST, _MOST = 0.15, 40.0  # requests a second: with fewer there is nothing to judge, with more it takes long to play
_MOST_CLIENTS = 1500
_LONGEST_SECONDS = 60.0  # of one request that is alone
_TRIES = 1000
_HARMLESS = 0.4  # of the worlds that are likely to bear what is wrong with them are played
_SURPRISES = 0.15  # of the worlds are not asked whether what was intended is likely to show


def world_of(seed: int) -> World:
    """The world of a seed. ``story`` is what was intended, which need not be what it turns out to be."""
    random = Random(f"world {seed}")  # noqa: S311 - a seeded model, no secret
    name = random.choice(tuple(STORIES))
    surprise = random.random() < _SURPRISES
    for _ in range(_TRIES):
        try:
            world = with_oddities(STORIES[name](random), random)
        except (UnfitError, ValueError):  # or its engine would not start
            continue
        if _can_be_judged(world) and (surprise or _likely(world, name, random)):
            return replace(world, seed=seed, story=name)
    raise RuntimeError(f"no world of seed {seed} in {_TRIES} tries")


def _can_be_judged(world: World) -> bool:
    workload = world.workload
    if workload.clients == 0 and workload.arrivals_per_second == 0.0:
        return True
    alone = expected(world)
    lasts = alone.ttft_seconds + alone.tpot_seconds * workload.output.median
    return workload.clients <= _MOST_CLIENTS and _FEWEST <= demanded(world) <= _MOST and lasts <= _LONGEST_SECONDS


def _likely(world: World, name: str, random: Random) -> bool:
    """As far as averages tell, what was intended pinches more than anything else does; of those who are asked for less
    than they manage, a part. It keeps the classes about as frequent as each other, and settles none: faults and
    whatever averages don't show are all likely."""
    if name not in RESOURCES or name in ("network", "stalled"):
        return True
    asked, managed = demanded(world), expected(world).requests_per_second
    if asked <= managed:
        return random.random() < _HARMLESS
    got = {resource: min(asked, _rate(world, resource)) for resource in RESOURCES}
    return got[name] >= max(0.95 * max(got.values()), 1.05 * managed)


def _rate(world: World, resource: str) -> float:
    others = relaxed(world, resource)
    return max(expected(other).requests_per_second for other in (*others, world))
