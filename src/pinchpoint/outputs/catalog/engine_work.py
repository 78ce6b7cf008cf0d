"""The engine family, deeper: the work in detail, what is sized, speculated, estimated, refused or asleep."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.engine_replica import by, engines, plain
from pinchpoint.outputs.catalog.metric import Each, Kind, Sample, counter, gauge
from pinchpoint.snapshot import EngineReading


def _of_server(field: str) -> Each[EngineReading]:
    """A number of the server before the replicas by one label: its reading's mapping of this name."""

    def of(e: EngineReading) -> Iterable[Sample]:
        return (((e.engine, key), n) for key, n in getattr(e.frontend, field).items())

    return Each(engines, of)


ENGINE_WORK_METRICS = (
    counter(
        "engine_admission_rejections_total",
        ("engine", "reason"),
        _of_server("admission_rejections_total"),
        "Requests that the engine's server turned away for its queue limits.",
    ),
    plain("inference_seconds", "Time in prefill and decode, observed when a request finishes.", Kind.HISTOGRAM),
    plain("tpot_seconds", "Mean time per output token of a request, when it finishes.", Kind.HISTOGRAM),
    plain("request_prompt_tokens", "Prompt tokens of a finished request.", Kind.HISTOGRAM),
    plain("request_computed_prompt_tokens", "Prompt tokens of a request that no cache served.", Kind.HISTOGRAM),
    plain("request_generation_tokens", "Tokens generated for a finished request.", Kind.HISTOGRAM),
    plain("request_max_generation_tokens", "Tokens of a finished request's longest answer.", Kind.HISTOGRAM),
    plain("request_max_tokens", "Tokens that a request asked for (max_tokens).", Kind.HISTOGRAM),
    plain("request_choices", "Answers that a request asked for (n).", Kind.HISTOGRAM),
    plain("request_preemptions", "Preemptions of a finished request.", Kind.HISTOGRAM),
    plain("steps_total", "Engine steps (forward passes), where they are counted alone.", Kind.COUNTER),
    plain("requests_swapped", "Requests swapped out to host memory."),
    plain("corrupted_requests_total", "Requests with NaN in their logits.", Kind.COUNTER),
    plain("speculative_drafts_total", "Drafts made by speculative decoding.", Kind.COUNTER),
    plain("speculative_draft_tokens_total", "Tokens drafted.", Kind.COUNTER),
    plain("speculative_accepted_tokens_total", "Drafted tokens that the model accepted.", Kind.COUNTER),
    by(
        "position",
        "speculative_accepted_tokens_by_position_total",
        "Drafted tokens accepted, by their position in the draft.",
        Kind.COUNTER,
    ),
    plain("speculative_emitted_tokens_total", "Tokens that speculative decoding emitted.", Kind.COUNTER),
    plain("speculative_acceptance_ratio", "Accepted over drafted tokens, as the engine's own gauge says."),
    plain("speculative_efficiency_ratio", "Emitted tokens over the most that could have been emitted."),
    plain("estimated_flops_per_gpu_total", "Floating-point operations per GPU, as the engine estimates.", Kind.COUNTER),
    plain("estimated_read_bytes_per_gpu_total", "Bytes read from memory per GPU, as estimated.", Kind.COUNTER),
    plain("estimated_write_bytes_per_gpu_total", "Bytes written to memory per GPU, as estimated.", Kind.COUNTER),
    plain("sleep_level", "How deep the engine sleeps: 0 awake, 1 weights offloaded, 2 weights discarded."),
    gauge(
        "engine_sleep_operations_in_flight",
        ("engine", "operation"),
        _of_server("sleep_operations_in_flight"),
        "Calls under way that put the engine to sleep or wake it.",
    ),
    gauge(
        "engine_lora_adapters",
        ("engine", "state"),
        _of_server("lora_adapters"),
        "LoRA adapters with a running or waiting request.",
    ),
    gauge(
        "engine_lora_adapters_max",
        ("engine",),
        Each(engines, lambda e: (((e.engine,), e.frontend.lora_adapters_max),)),
        "LoRA adapters that one batch may hold.",
    ),
)
