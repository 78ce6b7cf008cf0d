"""The truth about a world: the resource whose relaxation gains most, by playing it again with that one made generous.

Gains are in-SLO goodput over the most that any of the runs reached, so that they lie between 0 and 1 and compare. What
gains less than ``FLOOR`` is no bottleneck, and a world without one is healthy. Causes within ``TIE`` of the best gain
are all true. The label is the best of them, with two exceptions: of equals a fault comes first, because to mend one
only restores what four times the FLOPs outrun; and where the goodput is the same to ``SAME``, the lower latency
decides.

Where nothing gains alone but everything together does, a resource's gain is what is lost when all but it are generous.
Where not even that brings a request in, it is how much nearer the worse latency comes to its objective.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pinchpoint.simulator.node.service import Service, play
from pinchpoint.simulator.truth.outcome import SECONDS, WARM_UP_SECONDS, Outcome, outcome, outcome_of
from pinchpoint.simulator.truth.relax import (
    RESOURCES,
    generous,
    relaxed,
    with_one_more_replica,
    with_tensor_parallel_doubled,
)
from pinchpoint.simulator.world import Leak, World

FLOOR, TIE, SAME, HELPS = 0.03, 0.05, 0.01, 0.05
# Memory that a neighbour takes kills an engine later than is played. What is lost is the share of the coming half hour
# after its card is full, which is the longest that a warning has to be worth something to whoever is on call.
HORIZON_SECONDS = 1800.0
_FAULTS = ("hardware", "stalled", "imbalance", "network", "memory_growth")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """``label`` is the class, ``ties`` all that are true, itself included. ``compound``: no relaxation alone gained, so
    the gains are what is lost when all but that one are generous."""

    label: str
    ties: tuple[str, ...]
    gains: Mapping[str, float] = field(default_factory=dict)
    more_gpus_help: bool = False
    runner_up: str | None = None
    compound: bool = False
    in_slo_share: float = 1.0
    excess: float = 0.0  # the worse latency over its objective


def truth_of(world: World, seconds: float = SECONDS, warm_up_seconds: float = WARM_UP_SECONDS) -> Truth:
    """Plays the world, and again for each resource; a world that keeps its promises is played once."""
    if world.asleep:
        return Truth(label="sleeping", ties=("sleeping",))
    if world.workload.clients == 0 and world.workload.arrivals_per_second == 0.0:
        return Truth(label="idle", ties=("idle",))
    service = play(world, seconds, warm_up_seconds)
    base = outcome(service, seconds)
    growth = _lost_to_growth(service)
    if base.in_slo_share >= 1.0 - FLOOR:
        return _told(world, base, {"memory_growth": growth})
    again = _Again(world, base, seconds, warm_up_seconds)
    runs = {resource: again.best(relaxed(world, resource)) for resource in RESOURCES}
    grown = again.best(filter(None, (with_one_more_replica(world), with_tensor_parallel_doubled(world))))
    compound, gains = again.gains(runs)
    gains["memory_growth"] = growth
    return _told(world, base, gains, runs, more_gpus_help=again.helps(grown, runs), compound=compound)


class _Again:
    """The same world, played otherwise."""

    def __init__(self, world: World, base: Outcome, seconds: float, warm_up_seconds: float) -> None:
        self._world, self._base, self._times = world, base, (seconds, warm_up_seconds)

    def best(self, others: Iterable[World]) -> Outcome:
        """Of all these and the world itself."""
        outcomes = [outcome_of(other, *self._times) for other in others]
        return max([self._base, *outcomes], key=lambda each: (each.goodput, -each.excess(self._world.slo)))

    def gains(self, runs: Mapping[str, Outcome]) -> tuple[bool, dict[str, float]]:
        """Of each resource, and whether it takes several of them."""
        base, slo = self._base, self._world.slo
        most = max(run.goodput for run in runs.values())
        gains = {resource: _gain(base, run, most) for resource, run in runs.items()}
        if max(gains.values()) >= FLOOR:
            return False, gains
        everything = self.best([generous(self._world)])
        if _gain(base, everything, everything.goodput) >= FLOOR:
            lacking = {resource: self.best([generous(self._world, but=resource)]) for resource in RESOURCES}
            return True, {resource: _gain(run, everything, everything.goodput) for resource, run in lacking.items()}
        return False, {resource: 1.0 - run.excess(slo) / base.excess(slo) for resource, run in runs.items()}

    def helps(self, grown: Outcome, runs: Mapping[str, Outcome]) -> bool:
        """More of the requests in SLO, or a missed objective that is met."""
        slo, most = self._world.slo, max(grown.goodput, *(run.goodput for run in runs.values()))
        return _gain(self._base, grown, most) >= HELPS or self._base.excess(slo) > 1.0 >= grown.excess(slo)


def _gain(before: Outcome, after: Outcome, most: float) -> float:
    return max(0.0, after.goodput - before.goodput) / most if most > 0.0 else 0.0


def _told(
    world: World,
    base: Outcome,
    gains: Mapping[str, float],
    runs: Mapping[str, Outcome] = MappingProxyType({}),
    *,
    more_gpus_help: bool = False,
    compound: bool = False,
) -> Truth:
    def order(resource: str) -> tuple[bool, int, float]:
        latency = runs[resource].excess(world.slo) if resource in runs else 0.0
        return resource in _FAULTS, round(gains[resource] / SAME), -latency

    best = max(gains.values())
    ranked = sorted(gains, key=lambda resource: gains[resource], reverse=True)
    ties = [resource for resource in ranked if gains[resource] >= max(FLOOR, best - TIE)]
    ties.sort(key=order, reverse=True)
    if best < FLOOR + TIE:
        ties.append("healthy")
    others = [*ties[1:], *(resource for resource in ranked if resource not in ties and gains[resource] >= FLOOR)]
    return Truth(
        label=ties[0],
        ties=tuple(ties),
        gains={resource: round(gains[resource], 4) for resource in ranked if gains[resource] > 0.0},
        more_gpus_help=more_gpus_help,
        runner_up=others[0] if others else None,
        compound=compound,
        in_slo_share=round(base.in_slo_share, 4),
        excess=round(base.excess(world.slo), 3),
    )


def _lost_to_growth(service: Service) -> float:
    """The share of the service that is lost over the horizon, as the cards fill at the pace that they fill at."""
    leaks = [fault for fault in service.world.faults if isinstance(fault, Leak)]
    lost = 0.0
    for engine in service.engines:
        left = [
            max(0.0, service.cards[leak.gpu].free_bytes) / leak.bytes_per_second
            for leak in leaks
            if leak.gpu in engine.spec.gpus and leak.bytes_per_second > 0.0
        ]
        lost += max(0.0, 1.0 - min(left, default=HORIZON_SECONDS) / HORIZON_SECONDS)
    return lost / len(service.engines)
