"""vLLM's vocabulary: every name a field has had since 0.3.3, in the order in which to believe them.

Source: vllm/engine/metrics.py (V0), vllm/v1/metrics/loggers.py and the connectors' own (V1) of the releases 0.3.3 to
0.33. Replicas are kept apart here; adding them up is the diagnosis' business.
"""

from collections.abc import Mapping
from typing import Any

from pinchpoint.sources.engine.vocabulary import Kind, Term


def _counter(*names: str, **more: Any) -> Term:
    return Term(Kind.COUNTER, names, **more)


def _gauge(*names: str, **more: Any) -> Term:
    return Term(Kind.GAUGE, names, **more)


def _ratio(*names: str) -> Term:
    return Term(Kind.RATIO, names)


def _histogram(*names: str, **more: Any) -> Term:
    return Term(Kind.HISTOGRAM, names, **more)


_LOADED, _STORED = ("transfer_type", "CPU_to_GPU"), ("transfer_type", "GPU_to_CPU")

VOCABULARY: Mapping[str, Term] = {
    "requests_running": _gauge("vllm:num_requests_running"),
    "requests_waiting": _gauge("vllm:num_requests_waiting"),
    "requests_waiting_by_reason": _gauge("vllm:num_requests_waiting_by_reason", by="reason"),
    "requests_swapped": _gauge("vllm:num_requests_swapped"),
    "requests_kv_fetch_by_stage": _gauge("vllm:num_requests_kv_fetch_by_stage", by="stage"),
    "kv_cache_usage_ratio": _ratio("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "kv_cache_cpu_usage_ratio": _ratio("vllm:cpu_cache_usage_perc"),
    "preemptions_total": _counter("vllm:num_preemptions"),
    "prompt_tokens_total": _counter("vllm:prompt_tokens"),
    "prompt_tokens_computed_total": _counter("vllm:prompt_tokens_by_source", where=("source", "local_compute")),
    "prompt_tokens_by_source_total": _counter("vllm:prompt_tokens_by_source", by="source"),
    "prompt_tokens_cached_total": _counter("vllm:prompt_tokens_cached"),
    "prompt_tokens_cached_by_tier_total": _counter("vllm:prompt_tokens_cached_by_source", by="source"),
    "prompt_tokens_recomputed_total": _counter("vllm:prompt_tokens_recomputed"),
    "generation_tokens_total": _counter("vllm:generation_tokens"),
    # Blocks up to 0.8.5, tokens since: the ratio of the two is right either way.
    "prefix_cache_queries_total": _counter("vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"),
    "prefix_cache_hits_total": _counter("vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"),
    "prefix_cache_hit_ratio": Term(Kind.RATIO, ("vllm:gpu_prefix_cache_hit_rate",), unset=-1.0),
    "prefix_cache_cpu_hit_ratio": Term(Kind.RATIO, ("vllm:cpu_prefix_cache_hit_rate",), unset=-1.0),
    "external_prefix_cache_queries_total": _counter("vllm:external_prefix_cache_queries"),
    "external_prefix_cache_hits_total": _counter("vllm:external_prefix_cache_hits"),
    "multimodal_cache_queries_total": _counter("vllm:mm_cache_queries"),
    "multimodal_cache_hits_total": _counter("vllm:mm_cache_hits"),
    "request_success_total": _counter("vllm:request_success", by="finished_reason"),
    "corrupted_requests_total": _counter("vllm:corrupted_requests"),
    "ttft_seconds": _histogram("vllm:time_to_first_token_seconds"),
    "inter_token_seconds": _histogram("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
    "queue_seconds": _histogram("vllm:request_queue_time_seconds", "vllm:time_in_queue_requests"),
    "prefill_seconds": _histogram("vllm:request_prefill_time_seconds"),
    "decode_seconds": _histogram("vllm:request_decode_time_seconds"),
    "inference_seconds": _histogram("vllm:request_inference_time_seconds"),
    "e2e_seconds": _histogram("vllm:e2e_request_latency_seconds"),
    "tpot_seconds": _histogram("vllm:request_time_per_output_token_seconds"),
    "request_prompt_tokens": _histogram("vllm:request_prompt_tokens"),
    "request_computed_prompt_tokens": _histogram("vllm:request_prefill_kv_computed_tokens"),
    "request_generation_tokens": _histogram("vllm:request_generation_tokens"),
    "request_max_generation_tokens": _histogram("vllm:request_max_num_generation_tokens"),
    "request_max_tokens": _histogram("vllm:request_params_max_tokens"),
    "request_choices": _histogram("vllm:request_params_n"),
    "request_preemptions": _histogram("vllm:request_num_preemptions"),
    # A histogram in spite of its name.
    "iteration_tokens": _histogram("vllm:iteration_tokens_total"),
    "steps_total": _counter("vllm:engine_steps"),  # a recording's word for other engines' steps
    "speculative_drafts_total": _counter("vllm:spec_decode_num_drafts"),
    "speculative_draft_tokens_total": _counter("vllm:spec_decode_num_draft_tokens"),
    "speculative_accepted_tokens_total": _counter("vllm:spec_decode_num_accepted_tokens"),
    "speculative_accepted_tokens_by_position_total": _counter(
        "vllm:spec_decode_num_accepted_tokens_per_pos", by="position"
    ),
    "speculative_emitted_tokens_total": _counter("vllm:spec_decode_num_emitted_tokens"),
    "speculative_acceptance_ratio": _ratio("vllm:spec_decode_draft_acceptance_rate"),
    "speculative_efficiency_ratio": _ratio("vllm:spec_decode_efficiency"),
    "estimated_flops_per_gpu_total": _counter("vllm:estimated_flops_per_gpu"),
    "estimated_read_bytes_per_gpu_total": _counter("vllm:estimated_read_bytes_per_gpu"),
    "estimated_write_bytes_per_gpu_total": _counter("vllm:estimated_write_bytes_per_gpu"),
    "kv_block_lifetime_seconds": _histogram("vllm:kv_block_lifetime_seconds"),
    "kv_block_idle_before_evict_seconds": _histogram("vllm:kv_block_idle_before_evict_seconds"),
    "kv_block_reuse_gap_seconds": _histogram("vllm:kv_block_reuse_gap_seconds"),
    # By direction since 0.25; before, one family by transfer type, which is still there.
    "kv_offload_load_bytes_total": _counter(
        "vllm:kv_offload_load_bytes", otherwise=_counter("vllm:kv_offload_total_bytes", where=_LOADED)
    ),
    "kv_offload_store_bytes_total": _counter(
        "vllm:kv_offload_store_bytes", otherwise=_counter("vllm:kv_offload_total_bytes", where=_STORED)
    ),
    "kv_offload_load_seconds_total": _counter(
        "vllm:kv_offload_load_time", otherwise=_counter("vllm:kv_offload_total_time", where=_LOADED)
    ),
    "kv_offload_store_seconds_total": _counter(
        "vllm:kv_offload_store_time", otherwise=_counter("vllm:kv_offload_total_time", where=_STORED)
    ),
    "kv_offload_load_size_bytes": _histogram(
        "vllm:kv_offload_load_size", otherwise=_histogram("vllm:kv_offload_size", where=_LOADED)
    ),
    "kv_offload_store_size_bytes": _histogram(
        "vllm:kv_offload_store_size", otherwise=_histogram("vllm:kv_offload_size", where=_STORED)
    ),
    "kv_offload_allocation_failures_total": _counter("vllm:kv_offload_allocation_failure"),
    "kv_offload_stores_skipped_total": _counter("vllm:kv_offload_stores_skipped"),
    "kv_offload_cpu_pinned_ratio": _ratio("vllm:kv_offload_cpu_cache_usage_perc"),
    "kv_offload_cpu_read_pinned_ratio": _ratio("vllm:kv_offload_cpu_cache_read_usage_perc"),
    "kv_offload_cpu_write_pinned_ratio": _ratio("vllm:kv_offload_cpu_cache_write_usage_perc"),
    "kv_offload_lookup_sync_seconds": _histogram("vllm:kv_offload_lookup_sync_delay_seconds"),
    "kv_offload_lookup_async_seconds": _histogram("vllm:kv_offload_lookup_async_delay_seconds"),
    "kv_transfer_seconds": _histogram("vllm:nixl_xfer_time_seconds", "vllm:mooncake_xfer_time_seconds"),
    "kv_transfer_size_bytes": _histogram("vllm:nixl_bytes_transferred", "vllm:mooncake_bytes_transferred"),
    "kv_transfer_failures_total": _counter("vllm:nixl_num_failed_transfers", "vllm:mooncake_num_failed_transfers"),
    "kv_transfer_notification_failures_total": _counter("vllm:nixl_num_failed_notifications"),
    "kv_transfer_receive_failures_total": _counter("vllm:mooncake_num_failed_recvs"),
    "kv_transfer_expired_requests_total": _counter(
        "vllm:nixl_num_kv_expired_reqs", "vllm:mooncake_num_kv_expired_reqs"
    ),
    "kv_store_seconds": _histogram("vllm:mooncake_store_operation_time_seconds"),
    "kv_store_operations_total": _counter("vllm:mooncake_store_operation", by="operation"),
    "kv_store_bytes_total": _counter("vllm:mooncake_store_operation_bytes", by="operation"),
    "kv_store_failed_keys_total": _counter("vllm:mooncake_store_operation_failed_keys", by="operation"),
}
