"""What the NVML calls cost, by name, and which one is in progress: measured where they are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pinchpoint.snapshot import NvmlCall, NvmlCalls, StuckCall

STUCK_SECONDS = 1.0


class CallLedger:
    """The calls of one thread. That thread writes, any may read: each entry is replaced as a whole."""

    def __init__(self, clock: Callable[[], float], gpu: str = "") -> None:
        self.gpu = gpu
        self.in_progress: tuple[str, float] | None = None  # its name, since when
        self.costs: dict[str, tuple[int, float]] = {}  # name -> calls, seconds
        self.field_seconds: dict[str, float] = {}
        self._clock = clock

    def make(self, name: str, call: Callable[..., Any], *args: object) -> Any:
        """``call(*args)``, measured under ``name`` whatever comes of it."""
        began = self._clock()
        self.in_progress = name, began
        try:
            return call(*args)
        finally:
            self.in_progress = None
            calls, seconds = self.costs.get(name, (0, 0.0))
            self.costs[name] = calls + 1, seconds + self._clock() - began

    def add_field(self, field: str, seconds: float) -> None:
        """The driver's own measure of one field value."""
        self.field_seconds[field] = self.field_seconds.get(field, 0.0) + max(0.0, seconds)


class CallBook:
    """The ledgers of all threads that call NVML. A thread that ends leaves its ledger to its successor."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ledgers: dict[str, CallLedger] = {}

    def ledger(self, thread: str, gpu: str = "") -> CallLedger:
        """The ledger of the thread of that name, which asks about GPU ``gpu`` (an index; empty: the node)."""
        return self._ledgers.setdefault(thread, CallLedger(self._clock, gpu))

    def report(self, now: float) -> NvmlCalls:
        """All of them together. Waits for nobody."""
        calls: dict[str, tuple[int, float]] = {}
        fields: dict[str, float] = {}
        stuck: dict[tuple[str, str], float] = {}
        for ledger in tuple(self._ledgers.values()):
            for name, (count, seconds) in ledger.costs.copy().items():
                before = calls.get(name, (0, 0.0))
                calls[name] = before[0] + count, before[1] + seconds
            for name, seconds in ledger.field_seconds.copy().items():
                fields[name] = fields.get(name, 0.0) + seconds
            if (current := ledger.in_progress) and now - current[1] > STUCK_SECONDS:
                key = ledger.gpu, current[0]
                stuck[key] = max(stuck.get(key, 0.0), now - current[1])
        return NvmlCalls(
            calls=tuple(NvmlCall(call=n, calls_total=c, seconds_total=s) for n, (c, s) in sorted(calls.items())),
            field_seconds_total=dict(sorted(fields.items())),
            stuck=tuple(StuckCall(gpu=gpu, call=call, seconds=age) for (gpu, call), age in sorted(stuck.items())),
        )
