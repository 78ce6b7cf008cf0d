"""The engine's own word: queue, latency, KV cache, batch slots, replicas."""

from pydantic import BaseModel, Field


class EngineThresholds(BaseModel):
    # Queue, latency
    queue_share: float = Field(
        default=0.5, gt=0, le=1, description="Share of scrapes with a queue that makes it sustained: not a blip."
    )
    queue_wait_share: float = Field(
        default=0.5, gt=0, description="Expected wait in the queue, as a share of the TTFT objective, that hurts."
    )
    ttft_p95_observations: int = Field(
        default=20, ge=1, description="First tokens from which p95 is judged; below it a lower quantile: all but one."
    )
    ttft_quantile_observations: int = Field(
        default=6,
        ge=2,
        description="First tokens below which the mean is judged, as any quantile would be one of them.",
    )

    # KV cache
    kv_full_ratio: float = Field(
        default=0.90,
        gt=0,
        le=1,
        description="KV usage (0..1) that counts as full; .90 is vllm-doctor's, .80 is a plan.",
    )
    kv_share_begins: float = Field(default=0.3, ge=0, le=1, description="Share of queued scrapes with a full KV cache.")
    kv_share_certain: float = Field(
        default=0.7, gt=0, le=1, description="Same; a full pool swings each time a request ends, so not 1."
    )
    preemptions_per_second: float = Field(
        default=0.05, gt=0, description="Preemptions per second that hurt for certain (vllmstat warns at .05)."
    )

    preempted_share: float = Field(
        default=0.1, gt=0, description="Preemptions over started requests that hurt for certain; engineering choice."
    )

    # Scheduler
    slots_full_ratio: float = Field(
        default=0.95, gt=0, le=1, description="Running over max_num_seqs that counts as full: a slot refills next step."
    )
    slots_share_begins: float = Field(default=0.5, ge=0, le=1, description="Share of queued scrapes with full slots.")
    slots_share_certain: float = Field(default=0.8, gt=0, le=1, description="Same; engineering choice.")
    plateau_scrapes: int = Field(
        default=5, ge=2, description="Queued scrapes before a flat number of running requests hints at a limit."
    )
    budget_share_begins: float = Field(default=0.75, ge=0, description="Tokens per step over max_num_batched_tokens.")
    budget_share_certain: float = Field(default=0.95, gt=0, description="Same: the budget fills nearly every step.")
    kv_room_ratio: float = Field(
        default=0.80,
        gt=0,
        le=1,
        description="KV usage below which memory is no rival to the scheduler (WVA, GIE: .80).",
    )

    # Replicas
    spread_share_begins: float = Field(
        default=0.3, ge=0, le=1, description="Share of scrapes in which one replica is overloaded and another has room."
    )
    spread_share_certain: float = Field(default=0.6, gt=0, le=1, description="Same; half of the time is no blip.")
    replica_room_ratio: float = Field(
        default=0.5, gt=0, lt=1, description="Running, over the overloaded replica's or max_num_seqs, that is room."
    )
    spread_demand_certain: float = Field(
        default=0.9, gt=0, description="Even share of all load, over what one replica bears, that would be served."
    )
    spread_demand_ends: float = Field(default=1.1, gt=0, description="Same, from which evenness would not be enough.")
    spread_work_begins: float = Field(
        default=0.7, gt=0, description="Tokens of the overloaded replica, over another's: less, and it is slow itself."
    )
    spread_work_certain: float = Field(default=1.1, gt=0, description="Same: it is asked for more than the other.")
