"""The engine family, deeper: where prompt tokens and KV blocks come from, go to, and how long that takes."""

from collections.abc import Callable

from pinchpoint.outputs.catalog.engine_replica import by, plain
from pinchpoint.outputs.catalog.metric import Kind, Metric


def _counter(field: str, text: str) -> Metric:
    return plain(field, text, Kind.COUNTER)


def _histogram(field: str, text: str) -> Metric:
    return plain(field, text, Kind.HISTOGRAM)


def _counter_by(label: str) -> Callable[[str, str], Metric]:
    return lambda field, text: by(label, field, text, Kind.COUNTER)


ENGINE_KV_METRICS = (
    by("stage", "requests_kv_fetch_by_stage", "Requests whose KV blocks come from elsewhere, by stage of the fetch."),
    plain("kv_cache_cpu_usage_ratio", "Share of the swap space in host memory that is used."),
    plain("prefix_cache_hit_ratio", "Prefix cache hits over queries, as the engine's own gauge says."),
    plain("prefix_cache_cpu_hit_ratio", "The same of the cache in host memory."),
    _counter("external_prefix_cache_queries_total", "Tokens looked up in the cache of a KV connector."),
    _counter("external_prefix_cache_hits_total", "Tokens found in the cache of a KV connector."),
    _counter_by("source")("prompt_tokens_by_source_total", "Prompt tokens, by where their KV came from."),
    _counter("prompt_tokens_cached_total", "Prompt tokens that any cache served."),
    _counter_by("tier")("prompt_tokens_cached_by_tier_total", "Prompt tokens served from a cache, by its tier."),
    _counter("prompt_tokens_recomputed_total", "Prompt tokens that were cached and computed all the same."),
    _counter("multimodal_cache_queries_total", "Images and other items looked up in the multimodal cache."),
    _counter("multimodal_cache_hits_total", "Images and other items found in the multimodal cache."),
    _histogram("kv_block_lifetime_seconds", "Time from a KV block's allocation to its eviction, sampled."),
    _histogram("kv_block_idle_before_evict_seconds", "Time without use before a KV block's eviction, sampled."),
    _histogram("kv_block_reuse_gap_seconds", "Time between two uses of a KV block, sampled."),
    _counter("kv_offload_load_bytes_total", "Bytes of KV blocks loaded back to the GPU."),
    _counter("kv_offload_store_bytes_total", "Bytes of KV blocks stored to the offload tier."),
    _counter("kv_offload_load_seconds_total", "Time spent loading KV blocks back."),
    _counter("kv_offload_store_seconds_total", "Time spent storing KV blocks."),
    _histogram("kv_offload_load_size_bytes", "Bytes of one load from the offload tier."),
    _histogram("kv_offload_store_size_bytes", "Bytes of one store to the offload tier."),
    _counter("kv_offload_allocation_failures_total", "Stores for which the offload tier had no room."),
    _counter("kv_offload_stores_skipped_total", "Stores left out because the blocks are too seldom used."),
    plain("kv_offload_cpu_pinned_ratio", "Share of the offload tier held by transfers under way; no occupancy."),
    plain("kv_offload_cpu_read_pinned_ratio", "Share of the offload tier held by loads under way."),
    plain("kv_offload_cpu_write_pinned_ratio", "Share of the offload tier held by stores under way."),
    _histogram("kv_offload_lookup_sync_seconds", "Time of one lookup in the offload tier."),
    _histogram("kv_offload_lookup_async_seconds", "Time from a lookup put off to its answer."),
    _histogram("kv_transfer_seconds", "Time of one transfer of KV blocks between engines."),
    _histogram("kv_transfer_size_bytes", "Bytes of one transfer of KV blocks between engines."),
    _counter("kv_transfer_failures_total", "Transfers of KV blocks that failed."),
    _counter("kv_transfer_notification_failures_total", "Notices of finished transfers that failed."),
    _counter("kv_transfer_receive_failures_total", "Transfers of KV blocks that failed at the receiver."),
    _counter("kv_transfer_expired_requests_total", "Requests whose KV blocks expired before they were fetched."),
    _histogram("kv_store_seconds", "Time of one operation on the shared KV store."),
    _counter_by("operation")("kv_store_operations_total", "Operations on the shared KV store."),
    _counter_by("operation")("kv_store_bytes_total", "Bytes moved by operations on the shared KV store."),
    _counter_by("operation")("kv_store_failed_keys_total", "Keys that operations on the shared KV store failed on."),
)
