"""What takes two scrapes to see: a restart (no rate may span two epochs of an engine), and gauges that froze."""

from dataclasses import replace

from pinchpoint.snapshot import EngineReading, ReplicaReading
from pinchpoint.sources.engine.stillness import Stillness

# Sums of histograms are not here: vLLM can observe a negative time, so they may fall without a restart.
_COUNTERS = ("prompt_tokens_total", "generation_tokens_total", "preemptions_total", "prefix_cache_queries_total")


class EpochTracker:
    """Gives the readings of one engine their epoch: the server's start time, and how often a counter has fallen.

    Several API servers print no start time, and an engine core can restart beneath its server: so both are looked at.
    """

    def __init__(self) -> None:
        self._falls = 0
        self._last: dict[str, ReplicaReading] = {}
        self._stillness = Stillness()

    def stamp(self, reading: EngineReading) -> EngineReading:
        """``reading`` with its epoch, and without what is frozen. Readings must come in time order."""
        self._falls += any(_fell(self._last.get(r.replica), r) for r in reading.replicas)
        self._last = {r.replica: r for r in reading.replicas}
        return self._stillness.mark(replace(reading, epoch=f"{reading.epoch}#{self._falls}"))


def _fell(before: ReplicaReading | None, after: ReplicaReading) -> bool:
    pairs = ((getattr(before, name, None), getattr(after, name)) for name in _COUNTERS)
    return any(old is not None and new is not None and new < old for old, new in pairs)
