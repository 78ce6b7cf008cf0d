"""How evenly data-parallel replicas are loaded, and whether an even spread would be served."""

from collections.abc import Sequence
from dataclasses import dataclass

from pinchpoint.diagnosis.moments import waiting_of
from pinchpoint.diagnosis.rates import History, histories, known, mean, observed, rate, ratio, total
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading, ReplicaReading, Slo

_QUEUE_GROWS = 0.05  # of the requests that start: below, a queue stands
_LATE_LOAD = 0.7  # of the load at which first tokens are late without a queue: what would be in time


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Over the window; ``None`` with one replica, or where replicas do not tell.

    A replica is overloaded where its queue lasts or its requests miss an objective, and has room where neither is so
    and it runs few, with KV cache to spare. ``spread_demand_ratio`` is what an even spread would ask of each, over what
    the overloaded ones bear: below 1, evenness alone would serve everybody. ``spread_work_ratio`` is the tokens that
    the overloaded ones make over those of the others: below 1 they are not asked for more, they are slow.
    """

    replicas: float | None = None
    replicas_overloaded: float | None = None
    replicas_queued: float | None = None  # with a queue that lasts
    replicas_with_room: float | None = None
    spread_share: float | None = None  # of the scrapes: one replica overloaded while another had room
    running_spread_ratio: float | None = None  # the busiest over the mean of all
    kv_cache_usage_spread_ratio: float | None = None  # the fullest less the emptiest
    spread_demand_ratio: float | None = None
    spread_work_ratio: float | None = None
    overloaded: str = ""  # the replica with most requests of those
    freest: str = ""  # the one with fewest of those with room


@dataclass(frozen=True, slots=True, kw_only=True)
class _Replica:
    """Means over the window."""

    name: str
    history: History
    running: float
    waiting: float
    growth: float  # of the queue, requests per second
    kv: float | None
    queues: bool
    ttft_late: bool
    inter_token: float | None
    slow: bool  # misses TPOT
    started: float | None  # per second
    tokens: float | None  # computed and generated, per second

    @property
    def overloaded(self) -> bool:
        return self.queues or self.ttft_late or self.slow


def spread_of(readings: Sequence[EngineReading], thresholds: Thresholds) -> Spread:
    """From the scrapes of one epoch, oldest first; replicas of one model that are in the newest."""
    newest = readings[-1].replicas if readings else ()
    if len(newest) < 2 or len({replica.model for replica in newest}) > 1:
        return Spread()
    every = histories(readings)
    slo = readings[-1].slo
    found = [_measured(r.replica, every[r.replica], slo, thresholds) for r in newest]
    replicas = [replica for replica in found if replica is not None]
    if len(replicas) < len(found):
        return Spread(replicas=float(len(found)))
    hot = [replica for replica in replicas if replica.overloaded]
    limit = readings[-1].facts.max_num_seqs
    free = [replica for replica in replicas if _has_room(replica, hot, limit, thresholds)]
    usage = [replica.kv for replica in replicas if replica.kv is not None]
    average = mean([replica.running for replica in replicas])
    return Spread(
        replicas=float(len(replicas)),
        replicas_overloaded=float(len(hot)),
        replicas_queued=float(sum(replica.queues for replica in replicas)),
        replicas_with_room=float(len(free)),
        spread_share=_share(hot, free, limit, thresholds),
        running_spread_ratio=ratio(max(replica.running for replica in replicas), average),
        kv_cache_usage_spread_ratio=max(usage) - min(usage) if len(usage) > 1 else None,
        spread_demand_ratio=_demand(hot, free, replicas, slo, thresholds) if free else None,
        spread_work_ratio=_work(hot, free),
        overloaded=max(hot, key=lambda replica: replica.running + replica.waiting).name if hot else "",
        freest=min(free, key=lambda replica: replica.running).name if free else "",
    )


def _measured(name: str, history: History, slo: Slo, thresholds: Thresholds) -> _Replica | None:
    """``None`` of one that does not count its requests."""
    alone = {name: history}
    running = mean([replica.requests_running for _, replica in history])
    queue = [(at, waits) for at, replica in history if (waits := known(waiting_of(replica))) is not None]
    if running is None or not queue:
        return None
    waiting, span = sum(waits for _, waits in queue) / len(queue), queue[-1][0] - queue[0][0]
    first = observed(alone, lambda replica: replica.ttft_seconds)
    tokens = observed(alone, lambda replica: replica.inter_token_seconds or replica.tpot_seconds)
    started = rate(alone, lambda replica: replica.ttft_seconds.count if replica.ttft_seconds else None)
    lasts = min(_queued(queue), _queued(queue[len(queue) // 2 :])) >= thresholds.queue_share
    waits = ratio(waiting, started) if started else None
    within = first.share_within(slo.ttft_seconds) if first else None
    many = first is not None and first.count >= thresholds.ttft_p95_observations
    late = within < 0.95 if many and within is not None else ((first.mean if first else None) or 0.0) > slo.ttft_seconds
    pace = known(tokens.mean) if tokens else None
    return _Replica(
        name=name,
        history=history,
        running=running,
        waiting=waiting,
        growth=(queue[-1][1] - queue[0][1]) / span if span > 0 else 0.0,
        kv=mean([replica.kv_cache_usage_ratio for _, replica in history]),
        queues=lasts and (waits is None or waits >= thresholds.queue_wait_share * slo.ttft_seconds),
        ttft_late=late,
        inter_token=pace,
        slow=pace is not None and pace > slo.tpot_seconds,
        started=started,
        tokens=total(
            [
                rate(alone, lambda replica: replica.generation_tokens_total),
                rate(alone, _prompt_tokens),
            ]
        ),
    )


def _prompt_tokens(replica: ReplicaReading) -> float | None:
    computed = replica.prompt_tokens_computed_total
    return computed if computed is not None else replica.prompt_tokens_total


def _queued(queue: Sequence[tuple[float, float]]) -> float:
    return sum(waits > 0 for _, waits in queue) / len(queue)


def _has_room(replica: _Replica, hot: Sequence[_Replica], limit: int | None, thresholds: Thresholds) -> bool:
    if replica.overloaded or not hot or (replica.kv or 0.0) >= thresholds.kv_room_ratio:
        return False
    most = max(limit or 0.0, *(other.running for other in hot))
    return replica.running <= thresholds.replica_room_ratio * most and replica.waiting < 1.0


def _share(
    hot: Sequence[_Replica], free: Sequence[_Replica], limit: int | None, thresholds: Thresholds
) -> float | None:
    """Of the scrapes, those in which one of ``hot`` has a queue or is late, and one of ``free`` has room."""
    if not hot:
        return None
    late = any(replica.ttft_late or replica.slow for replica in hot)
    loads = [dict(replica.history) for replica in hot]
    others = [dict(replica.history) for replica in free]

    def uneven(at: float) -> bool:
        now = [load[at] for load in loads if at in load]
        busiest = max((known(reading.requests_running) or 0.0 for reading in now), default=0.0)
        queued = any((waiting_of(reading) or 0.0) > 0 for reading in now)
        most = thresholds.replica_room_ratio * max(limit or 0.0, busiest)
        spare = (other[at] for other in others if at in other)
        return (queued or late) and any((known(r.requests_running) or 0.0) <= most and not waiting_of(r) for r in spare)

    return mean([float(uneven(at)) for at in loads[0]])


def _demand(
    hot: Sequence[_Replica], free: Sequence[_Replica], every: Sequence[_Replica], slo: Slo, thresholds: Thresholds
) -> float:
    """What an even spread asks of a replica over what one bears, by whatever the overloaded ones suffer from."""
    even = sum(replica.running + replica.waiting for replica in every) / len(every)
    running = sum(replica.running for replica in hot) / len(hot)
    asked = [0.0]
    if any(replica.queues for replica in hot):
        asked.append(_queueing(hot, every, even, running))
    elif any(replica.ttft_late for replica in hot):  # long prompts in each other's way
        asked.append(even / running / _LATE_LOAD if running else 0.0)
    # The pace of one whose cache overflows is that of computing everything twice; it says nothing of half the load.
    slow = [replica for replica in hot if replica.slow and (replica.kv or 0.0) < thresholds.kv_full_ratio]
    if slow:
        asked.append(max(_pace_at(even, replica, free) for replica in slow) / slo.tpot_seconds)
    return max(asked)


def _queueing(hot: Sequence[_Replica], every: Sequence[_Replica], even: float, running: float) -> float:
    """A queue that grows shows arrivals against what is served; one that stands, how many are there at once.

    The backlog of a queue that has grown for long says nothing of what would be, had the spread been even.
    """
    served = mean([replica.started for replica in hot])
    growth = sum(replica.growth for replica in hot) / len(hot)
    if served and growth > _QUEUE_GROWS * served:
        arrivals = sum((replica.started or 0.0) + max(0.0, replica.growth) for replica in every)
        return arrivals / len(every) / served
    return even / running if running else float("inf")


def _pace_at(running: float, hot: _Replica, free: Sequence[_Replica]) -> float:
    """Time between tokens with ``running`` requests: on the line through the overloaded replica and the freest.

    Where the other makes no tokens, half of a step is taken to be the weights', which does not shrink with the batch.
    """
    slowest = hot.inter_token or 0.0
    other = min(free, key=lambda replica: replica.running)
    if other.inter_token is None or other.running <= 0 or hot.running <= other.running:
        return slowest * (0.5 + 0.5 * min(1.0, running / hot.running)) if hot.running else slowest
    share = (running - other.running) / (hot.running - other.running)
    return other.inter_token + min(1.0, share) * (slowest - other.inter_token)


def _work(hot: Sequence[_Replica], free: Sequence[_Replica]) -> float | None:
    mine, theirs = mean([replica.tokens for replica in hot]), mean([replica.tokens for replica in free])
    return ratio(mine, theirs)
