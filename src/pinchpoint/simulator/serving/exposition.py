"""A simulated engine's ``/metrics``: families, labels and buckets of a vLLM 0.33 server as it starts by default.

Written by hand rather than by a metrics library, because the point is to show what vLLM shows: ``_created`` series as
gauges, ``iteration_tokens_total`` as a histogram, every finish reason at 0 from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from pinchpoint.simulator.engine.ledger import Tally
from pinchpoint.simulator.engine.loop import SimulatedEngine

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"

_Samples = Iterable[tuple[Mapping[str, str], float]]


def render(engines: Sequence[SimulatedEngine], unix_epoch: float = 0.0) -> str:
    """The exposition of now: of one server, whose data-parallel engine cores are told apart by the label ``engine``.

    ``unix_epoch`` is the Unix time of simulated second 0.
    """
    spec, started = engines[0].spec, unix_epoch + engines[0].started_at
    lines = list(_process(engines, started))
    common = [{"engine": str(core), "model_name": spec.model} for core in range(len(engines))]
    for family in zip(*(_gauges(engine) for engine in engines), strict=True):
        name, description, _ = family[0]
        lines += _family(name, "gauge", description, list(_labelled(family, common)))
    for family in zip(*(_counters(engine) for engine in engines), strict=True):
        name, description, _ = family[0]
        of_server = name == "vllm:admission_rejections"  # counted before there is an engine core
        labelled = list(_labelled(family[:1], [{"model_name": spec.model}]) if of_server else _labelled(family, common))
        lines += _family(f"{name}_total", "counter", description, labelled)
        lines += _family(f"{name}_created", "gauge", description, [(labels, started) for labels, _ in labelled])
    for tallies in zip(*(_histograms(engine) for engine in engines), strict=True):
        name, description, _ = tallies[0]
        lines += _histogram(name, description, [tally for _, _, tally in tallies], common, started)
    infos = [({**_cache_config(engine), "engine": str(core)}, 1.0) for core, engine in enumerate(engines)]
    lines += _family("vllm:cache_config_info", "gauge", "The cache configuration.", infos)
    return "\n".join(lines) + "\n"


def _labelled(
    family: Sequence[tuple[str, str, _Samples]], common: Sequence[Mapping[str, str]]
) -> Iterator[tuple[Mapping[str, str], float]]:
    for (_, _, samples), own in zip(family, common, strict=True):
        for labels, value in samples:
            yield {**own, **labels}, value


def _family(name: str, kind: str, description: str, samples: _Samples) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        yield f"{name}{_braces(labels)} {float(value)!r}"


def _braces(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{labels[key]}"' for key in sorted(labels)) + "}" if labels else ""


def _histogram(
    name: str, description: str, tallies: Sequence[Tally], common: Sequence[Mapping[str, str]], started: float
) -> Iterator[str]:
    yield f"# HELP {name} {description}"
    yield f"# TYPE {name} histogram"
    for tally, labels in zip(tallies, common, strict=True):
        for series, count in zip(_buckets(name, tally.bounds, tuple(labels.items())), tally.cumulative(), strict=True):
            yield f"{series} {float(count)!r}"
        yield f"{name}_count{_braces(labels)} {float(tally.count)!r}"
        yield f"{name}_sum{_braces(labels)} {tally.sum!r}"
    yield from _family(f"{name}_created", "gauge", description, [(labels, started) for labels in common])


@lru_cache(maxsize=4096)
def _buckets(name: str, bounds: tuple[float, ...], labels: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Two thirds of all series: written once, since they never change."""
    return tuple(f"{name}_bucket{_braces({**dict(labels), 'le': bound})}" for bound in (*map(str, bounds), "+Inf"))


def _process(engines: Sequence[SimulatedEngine], started: float) -> Iterator[str]:
    cpu = sum(engine.now - engine.started_at + engine.work().host_cpu_seconds for engine in engines)
    python = {"implementation": "CPython", "major": "3", "minor": "12", "patchlevel": "11", "version": "3.12.11"}
    yield from _family("python_info", "gauge", "The Python the server runs on.", [(python, 1.0)])
    for name, kind, description, value in (
        ("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", 1.9e9),
        ("process_start_time_seconds", "gauge", "Unix time at which the process began.", started),
        ("process_cpu_seconds_total", "counter", "CPU time spent, user and system, in seconds.", cpu),
    ):
        yield from _family(name, kind, description, [({}, value)])


def _gauges(engine: SimulatedEngine) -> Iterator[tuple[str, str, _Samples]]:
    waiting = float(engine.waiting)
    shown = "weights_offloaded" if engine.conditions.asleep else "awake"
    yield "vllm:num_requests_running", "Requests in the batch.", [({}, float(engine.running))]
    yield "vllm:num_requests_waiting", "Requests in the queue.", [({}, waiting)]
    yield (
        "vllm:num_requests_waiting_by_reason",
        "Requests in the queue, by what they wait for.",
        [({"reason": "capacity"}, waiting), ({"reason": "deferred"}, 0.0)],
    )
    yield (
        "vllm:engine_sleep_state",
        "Whether the engine sleeps, and how deeply.",
        [({"sleep_state": state}, float(state == shown)) for state in ("awake", "weights_offloaded", "discard_all")],
    )
    yield "vllm:kv_cache_usage_perc", "Share of KV blocks in use; 1 is all.", [({}, engine.kv_usage_ratio)]


def _counters(engine: SimulatedEngine) -> Iterator[tuple[str, str, _Samples]]:
    ledger = engine.ledger
    computed = ledger.prompt_tokens - ledger.cached_tokens
    by_source = {"local_compute": computed, "local_cache_hit": ledger.cached_tokens, "external_kv_transfer": 0}
    by_tier = {"device": ledger.prefix_hits, "host": 0, "p2p": 0, "disk": 0, "external_unspecified": 0}
    rejections = {"max_num_queued_reqs": 0, "max_num_queued_tokens": 0}

    def one(value: float) -> _Samples:
        return [({}, value)]

    def split(label: str, values: Mapping[str, float]) -> _Samples:
        return [({label: key}, value) for key, value in values.items()]

    # The three estimates stay 0 without --enable-mfu-metrics.
    yield "vllm:estimated_flops_per_gpu", "Estimated floating point operations per GPU.", one(0)
    yield "vllm:estimated_read_bytes_per_gpu", "Estimated bytes read from memory per GPU.", one(0)
    yield "vllm:estimated_write_bytes_per_gpu", "Estimated bytes written to memory per GPU.", one(0)
    yield "vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.", one(ledger.prefix_queries)
    yield "vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.", one(ledger.prefix_hits)
    yield "vllm:external_prefix_cache_queries", "Tokens looked up in a KV connector.", one(0)
    yield "vllm:external_prefix_cache_hits", "Tokens found by a KV connector.", one(0)
    yield "vllm:mm_cache_queries", "Items looked up in the multimodal cache.", one(0)
    yield "vllm:mm_cache_hits", "Items found in the multimodal cache.", one(0)
    yield "vllm:num_preemptions", "Preemptions.", one(ledger.preemptions)
    yield "vllm:prompt_tokens", "Prompt tokens, cached ones included.", one(ledger.prompt_tokens)
    yield "vllm:prompt_tokens_by_source", "Prompt tokens by where their KV came from.", split("source", by_source)
    yield "vllm:prompt_tokens_cached", "Prompt tokens that were in a cache.", one(ledger.cached_tokens)
    yield "vllm:prompt_tokens_cached_by_source", "Cached prompt tokens by tier.", split("source", by_tier)
    yield "vllm:generation_tokens", "Generated tokens.", one(ledger.generation_tokens)
    yield "vllm:request_success", "Finished requests by reason.", split("finished_reason", ledger.success)
    yield "vllm:admission_rejections", "Requests refused by a queue limit.", split("reason", rejections)


def _histograms(engine: SimulatedEngine) -> Iterator[tuple[str, str, Tally]]:
    ledger = engine.ledger
    yield "vllm:request_prompt_tokens", "Prompt tokens per request.", ledger.prompt_size
    yield "vllm:request_generation_tokens", "Generated tokens per request.", ledger.generation_size
    yield "vllm:iteration_tokens_total", "Tokens per engine step.", ledger.iteration_tokens
    yield "vllm:request_max_num_generation_tokens", "Most tokens asked for per request.", ledger.max_generation_size
    yield "vllm:request_params_n", "The n parameter.", ledger.params_n
    yield "vllm:request_params_max_tokens", "The max_tokens parameter.", ledger.params_max_tokens
    yield "vllm:time_to_first_token_seconds", "Time to first token in seconds.", ledger.ttft
    yield "vllm:inter_token_latency_seconds", "Time between tokens in seconds.", ledger.inter_token
    yield "vllm:request_time_per_output_token_seconds", "Mean time per output token of a request.", ledger.tpot
    yield "vllm:e2e_request_latency_seconds", "Whole time of a request in seconds.", ledger.e2e
    yield "vllm:request_queue_time_seconds", "Time in the queue in seconds.", ledger.queue
    yield "vllm:request_inference_time_seconds", "Time in the batch in seconds.", ledger.inference
    yield "vllm:request_prefill_time_seconds", "Time in prefill in seconds.", ledger.prefill
    yield "vllm:request_decode_time_seconds", "Time in decode in seconds.", ledger.decode
    yield "vllm:request_num_preemptions", "Preemptions per request.", ledger.request_preemptions
    yield "vllm:request_prefill_kv_computed_tokens", "Prompt tokens computed per request.", ledger.prefill_computed


def _cache_config(engine: SimulatedEngine) -> Mapping[str, str]:
    """``CacheConfig`` as text. The size counts the null block, as vLLM's does."""
    spec = engine.spec
    tokens = spec.num_gpu_blocks * spec.block_size
    override = spec.num_gpu_blocks_override
    return {
        "_block_size_resolved": "True",
        "block_size": str(spec.block_size),
        "cache_dtype": spec.kv_cache_dtype,
        "effective_attention_block_size": str(spec.block_size),
        "enable_prefix_caching": str(spec.enable_prefix_caching),
        "engine": "0",
        "gpu_memory_utilization": str(spec.gpu_memory_utilization),
        "is_attention_free": "False",
        "kv_cache_dtype_skip_layers": "[]",
        "kv_cache_max_concurrency": str(tokens / spec.max_model_len),
        "kv_cache_memory_bytes": "None",
        "kv_cache_size_tokens": str(tokens),
        "mamba_block_size": "None",
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(spec.num_gpu_blocks),
        "num_gpu_blocks_override": str(override),
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": "None",
        "user_specified_block_size": "False",
    }
