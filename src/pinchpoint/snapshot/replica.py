"""One engine core at one moment, in words that fit every kind of engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaReading:
    """One engine core (vLLM's ``engine`` label: a data-parallel rank). Counters are since that core's start.

    Mappings hold only what the engine exposes: a key that is missing is unknown, not 0.
    """

    replica: str = "0"
    model: str | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    requests_waiting_by_reason: Mapping[str, float] = field(default_factory=dict)  # capacity, deferred
    requests_swapped: float | None = None  # moved to host memory, to be resumed
    requests_kv_fetch_by_stage: Mapping[str, float] = field(default_factory=dict)  # waiting for KV from elsewhere
    kv_cache_usage_ratio: float | None = None  # blocks of live requests; cached-but-free blocks count as free
    kv_cache_capacity_tokens: float | None = None
    kv_cache_cpu_usage_ratio: float | None = None  # swap space in host memory
    preemptions_total: float | None = None
    prompt_tokens_total: float | None = None  # includes tokens served from the prefix cache
    prompt_tokens_computed_total: float | None = None  # the prefill work alone, where the engine says it
    prompt_tokens_by_source_total: Mapping[str, float] = field(default_factory=dict)  # computed, cached here, fetched
    prompt_tokens_cached_total: float | None = None  # from any cache
    prompt_tokens_cached_by_tier_total: Mapping[str, float] = field(default_factory=dict)  # device, host, disk, ...
    prompt_tokens_recomputed_total: float | None = None  # cached, but computed again
    generation_tokens_total: float | None = None
    prefix_cache_queries_total: float | None = None
    prefix_cache_hits_total: float | None = None
    prefix_cache_hit_ratio: float | None = None  # a gauge of the engine's own span; two counters tell more
    prefix_cache_cpu_hit_ratio: float | None = None
    external_prefix_cache_queries_total: float | None = None  # of a KV connector
    external_prefix_cache_hits_total: float | None = None
    multimodal_cache_queries_total: float | None = None  # items, not tokens
    multimodal_cache_hits_total: float | None = None
    request_success_total: Mapping[str, float] = field(default_factory=dict)  # by finished_reason
    corrupted_requests_total: float | None = None  # with NaN in their logits
    awake: bool | None = None  # False: put to sleep, so an idle look means nothing
    sleep_level: float | None = None  # 0 awake, 1 weights moved to host memory, 2 weights and cache thrown away
    ttft_seconds: Histogram | None = None  # observed at the first token
    inter_token_seconds: Histogram | None = None  # observed each step
    queue_seconds: Histogram | None = None  # this and the following: observed when a request finishes
    prefill_seconds: Histogram | None = None
    decode_seconds: Histogram | None = None
    inference_seconds: Histogram | None = None  # prefill and decode
    e2e_seconds: Histogram | None = None
    tpot_seconds: Histogram | None = None  # the mean time per output token of each request
    request_prompt_tokens: Histogram | None = None
    request_computed_prompt_tokens: Histogram | None = None  # without the cached ones
    request_generation_tokens: Histogram | None = None
    request_max_generation_tokens: Histogram | None = None  # the longest of a request's answers
    request_max_tokens: Histogram | None = None  # what was asked for
    request_choices: Histogram | None = None  # answers asked for (n)
    request_preemptions: Histogram | None = None  # its lowest bucket may hold both none and one: its sum is exact
    iteration_tokens: Histogram | None = None  # tokens per engine step; its count is the number of steps
    steps_total: float | None = None  # engine steps, of an engine that counts them without their tokens
    # Speculative decoding. Acceptance = accepted / draft tokens; mean length = 1 + accepted / drafts.
    speculative_drafts_total: float | None = None
    speculative_draft_tokens_total: float | None = None
    speculative_accepted_tokens_total: float | None = None
    speculative_accepted_tokens_by_position_total: Mapping[str, float] = field(default_factory=dict)
    speculative_emitted_tokens_total: float | None = None  # accepted ones and the model's own
    speculative_acceptance_ratio: float | None = None  # a gauge of the engine's own span
    speculative_efficiency_ratio: float | None = None  # emitted over the most that could have been
    # The engine's own estimate of its work, per GPU.
    estimated_flops_per_gpu_total: float | None = None
    estimated_read_bytes_per_gpu_total: float | None = None
    estimated_write_bytes_per_gpu_total: float | None = None
    # How long KV blocks live. Sampled: shares and quantiles are right, numbers of blocks are not.
    kv_block_lifetime_seconds: Histogram | None = None
    kv_block_idle_before_evict_seconds: Histogram | None = None
    kv_block_reuse_gap_seconds: Histogram | None = None
    # KV blocks moved between the GPU and a cheaper tier: stored there, loaded back.
    kv_offload_load_bytes_total: float | None = None
    kv_offload_store_bytes_total: float | None = None
    kv_offload_load_seconds_total: float | None = None
    kv_offload_store_seconds_total: float | None = None
    kv_offload_load_size_bytes: Histogram | None = None
    kv_offload_store_size_bytes: Histogram | None = None
    kv_offload_allocation_failures_total: float | None = None
    kv_offload_stores_skipped_total: float | None = None
    kv_offload_cpu_pinned_ratio: float | None = None  # of the host tier: held by transfers under way, not occupancy
    kv_offload_cpu_read_pinned_ratio: float | None = None
    kv_offload_cpu_write_pinned_ratio: float | None = None
    kv_offload_lookup_sync_seconds: Histogram | None = None
    kv_offload_lookup_async_seconds: Histogram | None = None
    # KV blocks moved between engines (prefill and decode apart) or to a store that engines share.
    kv_transfer_seconds: Histogram | None = None
    kv_transfer_size_bytes: Histogram | None = None
    kv_transfer_failures_total: float | None = None
    kv_transfer_notification_failures_total: float | None = None
    kv_transfer_receive_failures_total: float | None = None
    kv_transfer_expired_requests_total: float | None = None  # given up before the other side had fetched their blocks
    kv_store_seconds: Histogram | None = None
    kv_store_operations_total: Mapping[str, float] = field(default_factory=dict)  # by operation
    kv_store_bytes_total: Mapping[str, float] = field(default_factory=dict)  # by operation
    kv_store_failed_keys_total: Mapping[str, float] = field(default_factory=dict)  # by operation
