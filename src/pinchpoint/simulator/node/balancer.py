"""The balancer before the replicas: whom it sends a request to."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from random import Random

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.world import Routing

POLICIES = ("least_loaded", "round_robin", "weighted")


class Balancer:
    """Picks among the replicas that live. It knows how many requests each has open, not how it fares."""

    def __init__(self, routing: Routing, replicas: int, random: Random) -> None:
        if routing.policy not in POLICIES:
            raise ValueError(f"no routing policy {routing.policy!r}: choose one of {', '.join(POLICIES)}")
        self._policy, self._random, self._turn = routing.policy, random, -1
        self._weights = routing.weights or (1.0,) * replicas

    def pick(self, engines: Sequence[SimulatedEngine], living: Sequence[int]) -> int:
        """The index of one of ``living``, of which there must be one. One number is drawn whatever the policy."""
        chance = self._random.random()
        self._turn += 1
        if self._policy == "round_robin":
            return living[self._turn % len(living)]
        if self._policy == "least_loaded":  # of equals the one whose turn it is
            size = len(engines)
            return min(living, key=lambda index: (engines[index].open_requests, (index - self._turn) % size))
        weights = list(accumulate(self._weights[index] for index in living))
        return next(index for index, upto in zip(living, weights, strict=True) if chance * weights[-1] <= upto)
