"""One inference engine at one moment, in words that fit every kind of engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from pinchpoint.snapshot.absence import Reason
from pinchpoint.snapshot.frontend import FrontendReading
from pinchpoint.snapshot.replica import ReplicaReading

_UNKNOWN: tuple[object, ...] = (None, "", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Slo:
    """What the service promised, in seconds. Defaults: TTFT 2 s, TPOT 50 ms (an interactive chat)."""

    ttft_seconds: float = 2.0
    tpot_seconds: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """What an operator gives, or the engine prints, about its own configuration. Unknown is ``None``.

    Names are vLLM's own flag names, which are also the keys of a recording's ``meta.json``.
    """

    kind: str = ""  # vllm, sglang, tgi, …; of a target that is empty, the exposition tells
    version: str | None = None
    model: str | None = None
    model_config: Mapping[str, object] = field(default_factory=dict)  # a Hugging Face config.json, as it is
    quantization: str | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    max_model_len: int | None = None
    tensor_parallel_size: int | None = None
    data_parallel_size: int | None = None
    gpu_memory_utilization: float | None = None
    enable_prefix_caching: bool | None = None
    gpu_name: str | None = None
    pipeline_parallel_size: int | None = None
    block_size: int | None = None  # tokens of a KV-cache block
    kv_cache_dtype: str | None = None
    kv_cache_capacity_tokens: float | None = None  # of one replica
    kv_cache_memory_bytes: float | None = None  # of one rank, as the start-up log says it
    origins: Mapping[str, str] = field(default_factory=dict)  # fact -> who said it; see ``completed``

    def completed(self, other: "EngineFacts", origin: str) -> "EngineFacts":
        """These facts, with ``other``'s where these are unknown. ``origins`` remembers who said those: ``origin``, or
        whom ``other`` has them from.

        Origins are ``config``, ``discovery``, ``metrics``, ``models`` (/v1/models), ``command_line``, ``log``,
        ``settings`` (the ``local_engine`` of the configuration) and ``nvml``; callers go from the most to the least
        believed. A server is believed before what it was started with.
        """
        new: dict[str, Any] = {name: value for name, value in other.known().items() if getattr(self, name) in _UNKNOWN}
        said_by = {name: other.origins.get(name, origin) for name in new}
        return replace(self, **new, origins={**self.origins, **said_by}) if new else self

    def known(self) -> dict[str, object]:
        """Every fact that is known, by name; not who said it."""
        return {
            each.name: value
            for each in fields(self)
            if each.name != "origins" and (value := getattr(self, each.name)) not in _UNKNOWN
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReading:
    """One scrape of one engine endpoint: its replicas, and what the exposition says about itself.

    ``engine`` is the operator's name of the target. ``epoch`` changes whenever the engine restarted (counters begin
    anew): no rate may span two epochs. ``gpus`` are the GPU indices that belong to the engine, ``()`` = not known;
    ``gpus_by_replica`` is which of them each replica has, under ``""`` those of which that is not known.
    ``unavailable`` says why a field of the replicas is not known, where that has a cause worth telling: it is switched
    off in the engine, its value made no sense, or this kind of engine has no such metric. ``tokens_at_end``: its token
    counters move only when a request ends, so that one that stands still says nothing. ``running_lag_seconds``: how
    long its count of running requests may outlast them. ``doubtful``: counts of this setup are known to contradict
    each other, so that a verdict on them is less sure.
    """

    engine: str
    at: float
    replicas: tuple[ReplicaReading, ...]
    frontend: FrontendReading = field(default_factory=FrontendReading)
    facts: EngineFacts = field(default_factory=EngineFacts)
    slo: Slo = field(default_factory=Slo)
    gpus: tuple[str, ...] = ()
    gpus_by_replica: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    epoch: str = ""
    url: str = ""  # without credentials
    warnings: tuple[str, ...] = ()  # e.g. "kv_cache_usage_perc -0.39 is outside 0..1, dropped"
    unavailable: Mapping[str, Reason] = field(default_factory=dict)  # field of a replica -> why it is not known
    tokens_at_end: bool = False
    running_lag_seconds: float = 0.0
    doubtful: bool = False

    def with_facts(self, facts: EngineFacts) -> "EngineReading":
        """This reading of an engine of which ``facts`` are known: the KV capacity too, where its metrics don't say it.

        vLLM's Rust frontend, for one, has no metric for it.
        """
        tokens = facts.kv_cache_capacity_tokens
        replicas = tuple(
            replace(r, kv_cache_capacity_tokens=tokens) if r.kv_cache_capacity_tokens is None else r
            for r in self.replicas
        )
        return replace(self, facts=facts, replicas=replicas if tokens else self.replicas)
