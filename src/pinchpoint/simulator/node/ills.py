"""What goes wrong when: the faults of a world, put upon its cards and engines at their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.node.cards import SimulatedCard
from pinchpoint.simulator.world import Fault, Leak, LostCard, Stall, Throttle


class Ills:
    """``apply`` sets what holds now; the faults' times count from ``began``. ``dead``: replicas that have ended."""

    def __init__(self, faults: Sequence[Fault], *, asleep: bool, began: float = 0.0) -> None:
        self._faults, self._asleep, self._began = faults, asleep, began
        self.dead: set[int] = set()

    def apply(self, now: float, engines: Sequence[SimulatedEngine], cards: Mapping[str, SimulatedCard]) -> None:
        stalled, played = set(), now - self._began
        for fault in self._faults:
            if isinstance(fault, Stall):
                if fault.at <= played < fault.until and fault.replica < len(engines):
                    stalled.add(fault.replica)
            elif fault.gpu in cards:
                stalled |= self._of_card(fault, cards[fault.gpu], played, engines)
        for index, engine in enumerate(engines):
            conditions = engine.conditions
            conditions.asleep = self._asleep
            conditions.stalled = index in stalled
            # Ranks run in lock step, so the slowest card sets the pace.
            own = [cards[gpu] for gpu in engine.spec.gpus]
            conditions.clock_ratio = min(card.clock_ratio for card in own)
            for card in own:
                card.asleep, card.dead = self._asleep, index in self.dead

    def _of_card(
        self, fault: Throttle | Leak | LostCard, card: SimulatedCard, played: float, engines: Sequence[SimulatedEngine]
    ) -> set[int]:
        """The replicas that stand still because of it."""
        owners = {index for index, engine in enumerate(engines) if card.index in engine.spec.gpus}
        if isinstance(fault, Throttle):
            card.throttle = fault if played >= fault.at else None
        elif isinstance(fault, LostCard):
            card.lost = played >= fault.at
            return owners if card.lost else set()
        else:
            # It stops where the card is full: then the engine's next allocation fails, and its process ends.
            card.neighbour_bytes = fault.begins_with_bytes + played * fault.bytes_per_second
            if card.free_bytes <= 0.0:
                card.neighbour_bytes += card.free_bytes
                self.dead |= owners
        return set()
