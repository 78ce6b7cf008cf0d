"""The engine family: what an inference engine says of itself, per replica, in words that fit every kind of engine."""

from collections.abc import Callable, Iterable

from pinchpoint.outputs.catalog.engine_replica import by, engines, plain
from pinchpoint.outputs.catalog.metric import Each, Kind, Metric, Sample, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import EngineReading

_FACTS = (
    "quantization",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "tensor_parallel_size",
    "data_parallel_size",
    "pipeline_parallel_size",
    "kv_cache_dtype",
    "gpu_name",
)


def _of_engine(name: str, text: str, value: Callable[[EngineReading], float | None]) -> Metric:
    """A number of each engine that was read."""

    read = Each(engines, lambda e: (((e.engine,), value(e)),))
    return Metric(name=name, kind=Kind.GAUGE, help=text, labels=("engine",), read=read)


def _up(scene: Scene) -> Iterable[Sample]:
    return (((name,), scene.snapshot.engine(name) is not None) for name in scene.snapshot.engine_names())


def _info(e: EngineReading) -> Iterable[Sample]:
    facts = (getattr(e.facts, name) for name in _FACTS)
    texts = ("" if fact is None else str(fact) for fact in facts)
    yield (e.engine, e.facts.kind, e.facts.version or "", e.facts.model or "", e.url, *texts), 1


def _gpus(scene: Scene) -> Iterable[Sample]:
    uuids = {g.gpu: g.uuid for g in scene.snapshot.gpus}
    for e in scene.snapshot.engines:
        for replica, gpus in (e.gpus_by_replica or {"": e.gpus}).items():
            yield from (((e.engine, replica, gpu, uuids.get(gpu, "")), 1) for gpu in gpus)


def _fact_origins(scene: Scene) -> Iterable[Sample]:
    for e in scene.snapshot.engines:
        yield from (((e.engine, fact, origin), 1) for fact, origin in e.facts.origins.items())
        if _inferred_slots(scene, e.engine) is not None:
            yield (e.engine, "max_num_seqs", "inferred"), 1


def _inferred(scene: Scene) -> Iterable[Sample]:
    return (((e.engine,), _inferred_slots(scene, e.engine)) for e in scene.snapshot.engines)


def _inferred_slots(scene: Scene, engine: str) -> float | None:
    settled = scene.verdicts.get(engine)
    return settled.diagnosis.signals.get("inferred_max_num_seqs") if settled else None


ENGINE_METRICS = (
    gauge(
        "engine_up",
        ("engine",),
        _up,
        "Whether the engine's last scrape was good (1) or not (0); metric_unavailable says why not.",
    ),
    info(
        "engine_info",
        ("engine", "kind", "version", "model", "url", *_FACTS),
        Each(engines, _info),
        "What the engine is and how it is configured; empty where unknown.",
    ),
    info(
        "engine_gpu_info",
        ("engine", "replica", "gpu", "uuid"),
        _gpus,
        "Which GPUs belong to the engine; replica is empty where it is not known which of them has the GPU.",
    ),
    info(
        "engine_fact_origin_info",
        ("engine", "fact", "origin"),
        _fact_origins,
        "Who said a fact: config, metrics, models (/v1/models), command_line, log, nvml; or that it is inferred.",
    ),
    _of_engine("engine_replicas", "Engine cores (data-parallel ranks) behind the endpoint.", lambda e: len(e.replicas)),
    _of_engine("engine_max_num_seqs", "Requests that may run at once in one replica.", lambda e: e.facts.max_num_seqs),
    gauge(
        "engine_inferred_max_num_seqs",
        ("engine",),
        _inferred,
        "Requests beyond which a replica has never gone while others waited: a limit that nobody told, in sight now.",
    ),
    plain("kv_cache_usage_ratio", "Share of KV-cache blocks held by live requests; cached but free blocks are free."),
    plain("kv_cache_capacity_tokens", "Tokens that the KV cache holds."),
    plain("requests_running", "Requests in the running batch."),
    plain("requests_waiting", "Requests that wait to be scheduled."),
    by("reason", "requests_waiting_by_reason", "Requests that wait, by what they wait for."),
    plain("preemptions_total", "Requests thrown out of the batch for want of KV-cache blocks.", Kind.COUNTER),
    plain("prompt_tokens_total", "Prompt tokens, those from the prefix cache included.", Kind.COUNTER),
    plain("prompt_tokens_computed_total", "Prompt tokens that were really prefilled.", Kind.COUNTER),
    plain("generation_tokens_total", "Tokens generated.", Kind.COUNTER),
    plain("prefix_cache_queries_total", "Tokens looked up in the prefix cache.", Kind.COUNTER),
    plain("prefix_cache_hits_total", "Tokens found in the prefix cache.", Kind.COUNTER),
    by("finished_reason", "request_success_total", "Requests finished, by reason; aborts are in it.", Kind.COUNTER),
    plain("awake", "Whether the engine is awake (1) or put to sleep (0)."),
    plain("ttft_seconds", "Time to first token, as the engine sees it.", Kind.HISTOGRAM),
    plain("inter_token_seconds", "Time between two tokens of a request.", Kind.HISTOGRAM),
    plain("queue_seconds", "Time in the queue, observed when a request finishes.", Kind.HISTOGRAM),
    plain("prefill_seconds", "Time in prefill, observed when a request finishes.", Kind.HISTOGRAM),
    plain("decode_seconds", "Time in decode, observed when a request finishes.", Kind.HISTOGRAM),
    plain("e2e_seconds", "Time from arrival to the last token, observed when a request finishes.", Kind.HISTOGRAM),
    plain("iteration_tokens", "Tokens of one engine step.", Kind.HISTOGRAM),
)
