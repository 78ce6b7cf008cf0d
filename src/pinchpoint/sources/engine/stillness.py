"""Tells gauges that froze: an engine sets them when it steps, and only then.

After a mass abort, or with a dead core behind a living server, they stay at their last value for ever. What a counter
says of the past stays true; a full KV cache that nothing has touched for half a minute is no measurement.
"""

from collections.abc import Iterator
from dataclasses import replace

from pinchpoint.snapshot import EngineReading, Reason, ReplicaReading

FROZEN_AFTER_SECONDS = 30.0  # the longest step that is no stall: a long prompt's prefill in one piece

_Counts = tuple[float | None, ...]


class Stillness:
    """Remembers when each replica of one engine last counted anything."""

    def __init__(self) -> None:
        self._moved: dict[str, tuple[float, _Counts]] = {}

    def mark(self, reading: EngineReading) -> EngineReading:
        """``reading`` without the KV usage of replicas that stand still, and with a warning. In time order, please."""
        if reading.tokens_at_end:  # no standing counter of this kind says anything
            return reading
        self._moved = {r.replica: self._last_moved(r, reading.at) for r in reading.replicas}
        frozen = {r.replica for r in reading.replicas if self._is_frozen(r, reading.at)}
        if not frozen:
            return reading
        longest = max(reading.at - self._moved[name][0] for name in frozen)
        return replace(
            reading,
            replicas=tuple(
                replace(r, kv_cache_usage_ratio=None) if r.replica in frozen else r for r in reading.replicas
            ),
            unavailable={**reading.unavailable, "kv_cache_usage_ratio": Reason.STALE},
            warnings=(_words(frozen, reading, longest), *reading.warnings),
        )

    def _last_moved(self, replica: ReplicaReading, at: float) -> tuple[float, _Counts]:
        counts = tuple(_counts(replica))
        before = self._moved.get(replica.replica)
        return before if before is not None and before[1] == counts else (at, counts)

    def _is_frozen(self, replica: ReplicaReading, at: float) -> bool:
        since, counts = self._moved[replica.replica]
        # An engine that prefills for others holds blocks that it has finished with, until they are fetched.
        holds_for_others = replica.kv_transfer_seconds is not None
        told = any(count is not None for count in counts)
        return (
            told and not holds_for_others and bool(replica.kv_cache_usage_ratio) and at - since > FROZEN_AFTER_SECONDS
        )


def _counts(replica: ReplicaReading) -> Iterator[float | None]:
    yield replica.prompt_tokens_total
    yield replica.generation_tokens_total
    yield replica.iteration_tokens.count if replica.iteration_tokens else None
    yield replica.steps_total


def _words(frozen: set[str], reading: EngineReading, seconds: float) -> str:
    whose = "" if len(frozen) == len(reading.replicas) else f" of replica {', '.join(sorted(frozen)[:8])}"
    minutes = int(seconds // 60)  # whole ones: the sentence stays the same from scrape to scrape
    long = f"{minutes} min" if minutes else "half a minute"
    return f"no token counter{whose} has moved for {long}: the gauges stand still, and the KV usage is not believed"
