"""A limit that nobody told, inferred: the number of running requests that is never passed while others wait.

``max_num_seqs`` is in no engine's metrics. Where it is not told, and requests wait although the KV cache has room, the
batch that stands before them again and again is likely as large as it may be. Inferred, and never mixed with what was
told: a token budget or a balancer can look the same for a while.
"""

from collections import Counter
from collections.abc import Sequence

from pinchpoint.diagnosis.moments import kv_is_full, waiting_of
from pinchpoint.diagnosis.rates import known
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.snapshot import EngineReading


def inferred_max_num_seqs(readings: Sequence[EngineReading], thresholds: Thresholds) -> float | None:
    """The plateau of one epoch's ``readings``; ``None`` without one.

    The largest number that any replica ever ran must have stood before a queue, with room in the KV cache, in at least
    ``plateau_scrapes`` scrapes, and in ``slots_share_certain`` of all scrapes with such a queue. A replica that runs
    the same number without a queue shows no limit, and adds none.
    """
    highest, queued = 0.0, Counter[float]()
    for reading in readings:
        for replica in reading.replicas:
            running = known(replica.requests_running)
            if running is None:
                continue
            highest = max(highest, running)
            usage = known(replica.kv_cache_usage_ratio)
            room = usage is not None and usage <= thresholds.kv_room_ratio and not kv_is_full(replica, thresholds)
            if room and (waiting_of(replica) or 0) > 0:
                queued[running] += 1
    at_limit = queued[highest]
    if highest < 1 or highest != int(highest) or at_limit < thresholds.plateau_scrapes:
        return None
    return highest if at_limit >= thresholds.slots_share_certain * queued.total() else None
