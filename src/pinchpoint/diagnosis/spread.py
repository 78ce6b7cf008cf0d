"""How evenly data-parallel replicas are loaded."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Over the window; ``None`` with one replica, or where replicas do not tell."""

    replicas: float | None = None
    replicas_queued: float | None = None  # with a queue that lasts
    replicas_with_room: float | None = None  # without one, and with slots and KV cache to spare
    spread_share: float | None = None  # of the scrapes: one replica queued while another had room
    running_spread_ratio: float | None = None  # the busiest over the mean of all
    kv_cache_usage_spread_ratio: float | None = None  # the fullest less the emptiest
