"""One scrape folded over its replicas: who waits, and for what.

Each replica is judged for itself before they are folded: a queue on one and a full cache on another are not one cause.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.identity import once_each
from pinchpoint.diagnosis.rates import known, total
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, ReplicaReading


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """Counts are sums over replicas, ``kv`` is the fullest replica, the flags are true when true of any replica."""

    at: float
    running: float | None
    waiting: float | None  # for capacity: deferred requests wait for something else (a LoRA slot, a KV transfer)
    deferred: float | None
    kv: float | None
    queue_kv: float | None  # the fullest replica with a queue
    kv_full: bool | None
    held_by_kv: bool | None  # a queue before a full KV cache
    held_by_slots: bool | None  # a queue before full batch slots

    @property
    def busy(self) -> bool:
        return any(count is not None and count > 0 for count in (self.running, self.waiting, self.deferred))


@once_each(4096)  # a minute of some hundred engines: each scrape is looked at for as long as it is in the window
def moment_of(reading: EngineReading, thresholds: Thresholds) -> Moment:
    """Folds one scrape. ``held_by_slots`` is ``None`` when ``max_num_seqs`` is not known."""
    replicas = reading.replicas
    queued = [(waiting_of(replica) or 0.0) > 0 for replica in replicas]
    usage = [known(replica.kv_cache_usage_ratio) for replica in replicas]
    full = [kv_is_full(replica, thresholds) for replica in replicas]
    slots = [_slots_full(replica, reading.facts.max_num_seqs, thresholds) for replica in replicas]
    return Moment(
        at=reading.at,
        running=total([replica.requests_running for replica in replicas]),
        waiting=total([waiting_of(replica) for replica in replicas]),
        deferred=total([replica.requests_waiting_by_reason.get("deferred") for replica in replicas]),
        kv=max((kv for kv in usage if kv is not None), default=None),
        queue_kv=max((kv for kv, queue in zip(usage, queued, strict=True) if queue and kv is not None), default=None),
        kv_full=_any(full),
        held_by_kv=_any_before(full, queued),
        held_by_slots=_any_before(slots, queued),
    )


def waiting_of(replica: ReplicaReading) -> float | None:
    """Requests that wait for capacity; every waiting request where the engine does not say why.

    One that was swapped out to host memory waits for KV blocks too.
    """
    capacity = known(replica.requests_waiting_by_reason.get("capacity"))
    return total([capacity if capacity is not None else replica.requests_waiting, replica.requests_swapped])


def kv_is_full(replica: ReplicaReading, thresholds: Thresholds) -> bool | None:
    """At the threshold, or without room for one more request of the mean size.

    The second matters where few requests fill the pool: with three running at 80 %, a fourth would need 107 %.
    """
    usage, running = known(replica.kv_cache_usage_ratio), known(replica.requests_running)
    if usage is None:
        return None
    return usage >= thresholds.kv_full_ratio or (
        running is not None and running >= 1 and usage * (running + 1) / running >= 1.0
    )


def _slots_full(replica: ReplicaReading, max_num_seqs: int | None, thresholds: Thresholds) -> bool | None:
    running = known(replica.requests_running)
    if running is None or not max_num_seqs or max_num_seqs < 0:
        return None
    return running >= thresholds.slots_full_ratio * max_num_seqs


def _any(flags: Sequence[bool | None]) -> bool | None:
    told = [flag for flag in flags if flag is not None]
    return any(told) if told else None


def _any_before(full: Sequence[bool | None], queued: Sequence[bool]) -> bool | None:
    """Whether a queue stands before something full on the same replica."""
    return _any([None if flag is None else flag and queue for flag, queue in zip(full, queued, strict=True)])
