"""What of one GPU outlives its handles: counters that must not fall because we opened it anew."""

from collections.abc import Mapping
from dataclasses import dataclass

from pinchpoint.sources.gpu.throttle import ThrottleLedger


class Unwrapped:
    """A driver's counter of few bits, as one that goes on.

    It wrapped when it was in its last quarter and now is in its first; any other fall is a reset and is passed on.
    """

    def __init__(self, bits: int = 32) -> None:
        self._modulus = 1 << bits
        self._turns = 0
        self._last = 0

    def after(self, raw: int) -> int:
        """The count when the driver says ``raw``."""
        if raw < self._last:
            quarter = self._modulus // 4
            wrapped = self._last >= 3 * quarter and raw < quarter
            self._turns = self._turns + 1 if wrapped else 0
        self._last = raw
        return self._turns * self._modulus + raw


@dataclass(frozen=True, slots=True)
class Remote:
    """What is at the other end of an NVLink: gpu, switch or cpu, and its PCI address."""

    kind: str | None = None
    pci_bus_id: str | None = None


class History:
    """One GPU's, by UUID. Written by the thread that reads this GPU; ``remotes``, by link, by that of the topology."""

    def __init__(self, longest_gap_seconds: float) -> None:
        self.throttle = ThrottleLedger(longest_gap_seconds)
        self.invalid: dict[str, float] = {}  # field -> samples dropped
        self.missed_cycles = 0.0
        self.remotes: Mapping[int, Remote] = {}
        self._unwrapped: dict[str, Unwrapped] = {}

    def unwrap(self, field: str, raw: int) -> int:
        """A 32-bit counter's count since the start."""
        return self._unwrapped.setdefault(field, Unwrapped()).after(raw)

    def drop(self, field: str) -> None:
        """Count a value that can't be."""
        self.invalid[field] = self.invalid.get(field, 0.0) + 1
