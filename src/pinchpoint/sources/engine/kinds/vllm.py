"""vLLM: its table, and what takes more than a name: KV capacity, sleep, what is switched off."""

import re
from collections.abc import Mapping
from typing import Any

from pinchpoint.snapshot import EngineFacts, Reason, ReplicaReading
from pinchpoint.sources.engine.exposition import Families, Sample
from pinchpoint.sources.engine.kinds.kind import EngineKind, Translation
from pinchpoint.sources.engine.kinds.table import MAX_REPLICAS, MAX_WARNINGS, natural
from pinchpoint.sources.engine.kinds.vllm_frontend import read_frontend
from pinchpoint.sources.engine.kinds.vllm_table import VOCABULARY
from pinchpoint.sources.engine.vocabulary import (
    Fields,
    Kind,
    Term,
    Value,
    read_fields,
    read_term,
    replica_of,
)

_SLEEP_STATE = Term(Kind.GAUGE, ("vllm:engine_sleep_state",), by="sleep_state")
_SLEEP_LEVELS = {"awake": 0.0, "weights_offloaded": 1.0, "discard_all": 2.0}
_ESTIMATES = tuple(name for name in VOCABULARY if name.startswith("estimated_"))
_CACHE_CONFIG = "vllm:cache_config_info"


def read(families: Families, said: EngineFacts) -> Translation:
    """A (folded) vLLM exposition in our words.

    A server that has only declared its metrics has one replica of which nothing is known. No I/O, raises nothing.
    """
    found = read_fields(VOCABULARY, families)
    states = read_term(_SLEEP_STATE, families, found.warn)
    models = _models(families)
    if len(found.by_replica) > MAX_REPLICAS:
        found.warn(f"{len(found.by_replica)} replicas, only {MAX_REPLICAS} are read")
    if not found.by_replica:
        found.warn("metrics are declared and have no value yet: the engine warms up, or has served no request")
        found.unavailable["requests_running"] = Reason.STARTING
    replicas = []
    hybrid = False
    for name in sorted(found.by_replica, key=natural)[:MAX_REPLICAS]:
        fields: dict[str, Any] = found.by_replica[name]
        config = cache_config(families, name)
        hybrid = hybrid or is_hybrid(config)
        _drop_estimates_that_are_off(fields, found)
        _drop_usage_of_no_pool(fields, config, found)
        fields |= _sleep(states.get(name))
        capacity = kv_capacity_tokens(config, said.max_model_len)
        replicas.append(
            ReplicaReading(replica=name, model=models.get(name), kv_cache_capacity_tokens=capacity, **fields)
        )
    frontend = read_frontend(families, found)
    if hybrid:
        _doubt_sizes(replicas, found)
    return Translation(
        replicas=tuple(replicas) or (ReplicaReading(),),
        frontend=frontend,
        warnings=tuple(found.warnings)[:MAX_WARNINGS],
        unavailable=found.unavailable,
    )


def _doubt_sizes(replicas: list[ReplicaReading], found: Fields) -> None:
    """vLLM issues 28228, 40691 and 42966, pull request 55624."""
    if any(r.kv_cache_capacity_tokens for r in replicas):
        found.warn("a hybrid model: its KV capacity in tokens is the engine's estimate over caches of several kinds")
    if any(r.estimated_flops_per_gpu_total for r in replicas):
        found.warn("a hybrid model: vLLM's estimates of its FLOPs and bytes were wrong for a while")


def _drop_estimates_that_are_off(fields: dict[str, Any], found: Fields) -> None:
    """FLOPs and bytes are registered at 0 and move only with --enable-mfu-metrics: no 0 of theirs means idle."""
    for name in _ESTIMATES:
        if fields.get(name) == 0:
            del fields[name]
            if fields.get("generation_tokens_total"):
                found.unavailable[name] = Reason.NOT_ENABLED


def _drop_usage_of_no_pool(fields: dict[str, Any], config: Mapping[str, str], found: Fields) -> None:
    """A pooling or attention-free model has no KV cache, and a usage of 0 for ever."""
    none = config.get("num_gpu_blocks") == "0" or config.get("is_attention_free") == "True"
    if none and fields.pop("kv_cache_usage_ratio", None) is not None:
        found.unavailable["kv_cache_usage_ratio"] = Reason.NOT_SUPPORTED


def _sleep(states: Value | None) -> dict[str, Any]:
    """Awake, and how deep asleep. A release of the KV cache alone shows in neither."""
    if not isinstance(states, Mapping) or "awake" not in states:
        return {}
    level = next((level for state, level in _SLEEP_LEVELS.items() if states.get(state)), None)
    return {"awake": states["awake"] != 0, "sleep_level": level}


def cache_config(families: Families, replica: str | None = None) -> Mapping[str, str]:
    """The labels of ``cache_config_info``: vLLM's CacheConfig as text. Empty where the engine does not print it.

    Of ``replica``, or of any when that is ``None``. A line without an engine label (before 0.9) speaks for all.
    """
    for sample in families.samples.get(_CACHE_CONFIG, ()):
        if replica is None or _speaks_for(sample, replica):
            return sample.labels
    return {}


def _speaks_for(sample: Sample, replica: str) -> bool:
    return replica_of(sample.labels) == replica or not sample.labels.keys() & {"engine", "ReplicaId"}


def kv_capacity_tokens(config: Mapping[str, str], max_model_len: int | None = None) -> float | None:
    """The KV cache's size in tokens, or ``None`` where the engine does not say it.

    ``kv_cache_size_tokens`` (0.25 and up) knows every cache group, and so does the number of longest requests that fit.
    Blocks times block size is right only where all layers share one kind of block. A pool without blocks (a pooling
    model) has no capacity to fill.
    """
    tokens: float | None = _integer(config.get("kv_cache_size_tokens"))
    requests = _decimal(config.get("kv_cache_max_concurrency"))
    if tokens is None and requests and max_model_len:
        tokens = float(int(requests * max_model_len))
    if tokens is None and not is_hybrid(config):
        blocks, block_size = _integer(config.get("num_gpu_blocks")), _integer(config.get("block_size"))
        if blocks is None:
            blocks = _integer(config.get("num_gpu_blocks_override"))
        tokens = blocks * block_size if blocks is not None and block_size is not None else None
    return float(tokens) if tokens else None


def is_hybrid(config: Mapping[str, str]) -> bool:
    """Whether layers of several kinds share the cache: then ``block_size`` is the smallest of their block sizes."""
    own, attention = config.get("block_size"), _integer(config.get("effective_attention_block_size"))
    return config.get("mamba_block_size", "None") != "None" or (attention is not None and str(attention) != own)


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,15}", text) else None


def _decimal(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,15})?", text) else None


def _models(families: Families) -> dict[str, str]:
    models: dict[str, str] = {}
    for name, samples in families.samples.items():
        for sample in samples if name.startswith("vllm:") else ():
            model = sample.labels.get("model_name") or sample.labels.get("model")  # Triton's backend says "model"
            if model:
                models.setdefault(replica_of(sample.labels), model)
    return models


def _facts(families: Families) -> EngineFacts:
    config = cache_config(families)
    block_size = _integer(config.get("block_size"))
    return EngineFacts(
        block_size=block_size or None,
        enable_prefix_caching={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
        gpu_memory_utilization=_share(config.get("gpu_memory_utilization")),
    )


def _share(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


KIND = EngineKind(
    name="vllm",
    title="vLLM",
    marks=("vllm:",),
    says=(frozenset(VOCABULARY) - {"steps_total"}) | {"awake", "sleep_level", "kv_cache_capacity_tokens"},
    read=read,
    facts=_facts,
    dies_by_health=True,
    remedy="start vLLM without --disable-log-stats; check port and metrics_path",
)
