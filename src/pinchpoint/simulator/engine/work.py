"""What a rank and its host have done: the numbers behind the counters of cards and CPUs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple


class StepCost(NamedTuple):
    """One step on one rank. For ``gpu_seconds`` of it a kernel is resident (one that waits in an all-reduce too)."""

    seconds: float
    gpu_seconds: float
    communication_seconds: float
    host_cpu_seconds: float
    flops: float
    moved_bytes: float
    pcie_communication_bytes: float
    nvlink_communication_bytes: float


@dataclass(slots=True)
class Work:
    """Sums since the engine began, of one rank: what it sent to its peers, computed, moved; of the host: CPU time."""

    gpu_seconds: float = 0.0
    communication_seconds: float = 0.0
    host_cpu_seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    pcie_communication_bytes: float = 0.0
    nvlink_communication_bytes: float = 0.0

    def add(self, cost: StepCost) -> None:
        self.gpu_seconds += cost.gpu_seconds
        self.communication_seconds += cost.communication_seconds
        self.host_cpu_seconds += cost.host_cpu_seconds
        self.flops += cost.flops
        self.moved_bytes += cost.moved_bytes
        self.pcie_communication_bytes += cost.pcie_communication_bytes
        self.nvlink_communication_bytes += cost.nvlink_communication_bytes

    def plus(self, cost: StepCost, share: float) -> Work:
        """These sums and a share of a step."""
        return Work(*(getattr(self, name) + share * getattr(cost, name) for name in _NAMES))

    def since(self, earlier: Work) -> Work:
        return Work(*(getattr(self, name) - getattr(earlier, name) for name in _NAMES))


_NAMES = tuple(field.name for field in fields(Work))
