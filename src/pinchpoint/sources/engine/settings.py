"""What an operator says about the engines to watch."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pinchpoint.snapshot import EngineFacts, EngineTarget, Slo
from pinchpoint.sources.engine.kinds import AUTO, KINDS
from pinchpoint.sources.http.access import AccessSettings, TlsSettings
from pinchpoint.sources.http.base_url import BaseUrl

MAX_COUNT = 10**12  # of tokens, sequences, GPUs: far above any, and still a float
_FACTS = EngineFacts.__dataclass_fields__.keys()


class SloSettings(BaseModel):
    """The latency that the service promised."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ttft_seconds: float = Field(
        default=2.0,
        gt=0,
        le=3600,
        description="Time to first token, seconds. Default 2: where a chat user starts to wonder.",
    )
    tpot_seconds: float = Field(
        default=0.05,
        gt=0,
        le=60,
        description="Time per output token, seconds. Default 0.05: 20 tokens/s, faster than reading.",
    )


class EngineSettings(AccessSettings):
    """One engine to watch. What is left out is unknown, and the diagnosis says where that cost it certainty."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, coerce_numbers_to_str=True)

    name: str = Field(
        pattern=r"^[^\x00-\x1f\x7f]{1,100}$", description="Name of the engine: the label `engine` on every metric."
    )
    url: BaseUrl = Field(description="Base URL, like http://127.0.0.1:8000.")
    metrics_path: str = Field(
        default="/metrics",
        pattern=r"^/[!-~]*$",
        description="Path of the exposition below `url`. Default: where its kind has it.",
    )
    kind: str = Field(
        default=AUTO,
        description=f"The kind of engine: {', '.join(KINDS)}. Default auto: its exposition tells.",
    )
    side_effects: bool = Field(
        default=False,
        description="Scrape llama.cpp's router, and a llama-server that sleeps, though that loads a model and keeps it "
        "awake. Default false: looking must not change what is looked at.",
    )
    version: str | None = Field(default=None, description="Engine version. Default: asked for at /version.")
    model: str | None = Field(default=None, description="Model name. Default: the model_name label of the exposition.")
    hf_config: dict[str, object] = Field(  # pydantic keeps the name model_config for itself
        default_factory=dict, alias="model_config", description="The model's config.json. Default: unknown shape."
    )
    quantization: str | None = Field(default=None, description="vLLM's --quantization. Default: unknown.")
    max_num_seqs: int | None = Field(
        default=None,
        ge=1,
        le=MAX_COUNT,
        description="vLLM's --max-num-seqs, which it does not export. Default: unknown.",
    )
    max_num_batched_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_COUNT,
        description="vLLM's --max-num-batched-tokens, which it does not export. Default: unknown.",
    )
    max_model_len: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="vLLM's --max-model-len, tokens. Default: unknown."
    )
    tensor_parallel_size: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="GPUs per replica. Default: unknown."
    )
    data_parallel_size: int | None = Field(default=None, ge=1, le=MAX_COUNT, description="Replicas. Default: unknown.")
    pipeline_parallel_size: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Stages of a replica. Default: unknown."
    )
    kv_cache_capacity_tokens: float | None = Field(
        default=None,
        gt=0,
        le=MAX_COUNT,
        description="Tokens that one replica's KV cache holds. Default: as the engine's metrics or its log say.",
    )
    kv_cache_dtype: str | None = Field(default=None, description="vLLM's --kv-cache-dtype. Default: unknown.")
    block_size: int | None = Field(
        default=None, ge=1, le=MAX_COUNT, description="Tokens of a KV-cache block. Default: unknown."
    )
    gpu_memory_utilization: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="vLLM's --gpu-memory-utilization, ratio. Default: as the engine prints it.",
    )
    enable_prefix_caching: bool | None = Field(
        default=None, description="vLLM's --enable-prefix-caching. Default: as the engine prints it."
    )
    gpu_name: str | None = Field(
        default=None, description="GPU model, like NVIDIA H100 80GB HBM3. Default: as NVML says."
    )
    slo: SloSettings = Field(default=SloSettings(), description="The promised latency.")
    gpus: tuple[str, ...] = Field(
        default=(), description="Indices of the engine's GPUs, like ['0', '1']. Default: not known."
    )
    log_file: Path | None = Field(
        default=None,
        description="File that holds the engine's start-up log, read for what it does not export. Default: where its "
        "process on this host writes, if that is a file, a systemd unit's journal or Docker's.",
    )
    log_unit: str = Field(
        default="",
        pattern=r"^([A-Za-z0-9:_.\\@][A-Za-z0-9:_.\\@-]{0,254})?$",
        description="systemd unit whose journal holds that log, like vllm.service. Default: as log_file.",
    )
    timeout_seconds: float | None = Field(
        default=None,
        gt=0,
        le=60,
        description="Deadline of one scrape of this engine, seconds. Default: as all engines.",
    )

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, kind: str) -> str:
        if kind != AUTO and kind not in KINDS:
            raise ValueError(f"{kind[:40]!r} is no kind of engine; known are {', '.join((AUTO, *KINDS))}")
        return kind

    @model_validator(mode="after")
    def _tls_is_used(self) -> Self:
        if self.tls != TlsSettings() and self.url.startswith("http://"):
            raise ValueError("tls is given, and url is http://, which uses none; write https://, or remove tls")
        return self

    @model_validator(mode="after")
    def _side_effects_are_wanted(self) -> Self:
        names_a_model = "model=" in self.metrics_path.partition("?")[2]
        if names_a_model and self.kind in (AUTO, "llamacpp") and not self.side_effects:
            raise ValueError(
                "metrics_path names a model: each scrape would load it into llama.cpp's router and keep it awake; "
                "set side_effects: true if that is wanted"
            )
        return self

    def target(self) -> EngineTarget:
        """The endpoint to scrape. Reads no file: whoever asks does, and again when one changes."""
        own = self.model_dump(include=_FACTS & type(self).model_fields.keys())
        own["kind"] = "" if self.kind == AUTO else self.kind
        return EngineTarget(
            engine=self.name,
            url=self.url,
            metrics_path=self.metrics_path,
            facts=EngineFacts(**own, model_config=self.hf_config),
            slo=Slo(ttft_seconds=self.slo.ttft_seconds, tpot_seconds=self.slo.tpot_seconds),
            gpus=self.gpus,
            access=self.access(),
            timeout_seconds=self.timeout_seconds,
            log_file=str(self.log_file) if self.log_file is not None else "",
            log_unit=self.log_unit,
            side_effects=self.side_effects,
        )


class EngineSourceSettings(BaseModel):
    """How engines are scraped, and which. That their names differ is checked where a configuration is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    interval_seconds: float = Field(
        default=5.0,
        ge=1,
        le=300,
        description="Seconds between scrapes. Default 5: a scrape runs on the engine's serving loop.",
    )
    timeout_seconds: float = Field(
        default=4.0,
        gt=0,
        le=60,
        description="Deadline of one scrape, seconds, all told. Default 4: below the interval.",
    )
    max_body_bytes: int = Field(
        default=16 * 2**20,
        ge=1024,
        le=2**30,
        description="Largest body, bytes, inflated. Default 16 MiB: 250 times vLLM's.",
    )
    gzip: bool = Field(
        default=False,
        description="Ask for compressed bodies. Default false: an engine would compress on its serving loop; over a "
        "slow or metered link a tenth of the bytes is worth that.",
    )
    stale_after_seconds: float | None = Field(
        default=None,
        gt=0,
        le=3600,
        description="Age, seconds, at which a reading is dropped. Default: three intervals, that is three missed "
        "scrapes, but never less than one interval and one deadline.",
    )
    targets: tuple[EngineSettings, ...] = Field(default=(), max_length=2000, description="The engines. Default: none.")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.fresh_for_seconds < self.interval_seconds:
            raise ValueError("stale_after_seconds is below interval_seconds, so every reading would go stale; raise it")
        return self

    @property
    def fresh_for_seconds(self) -> float:
        """The age up to which a reading is served."""
        return self.stale_after_seconds or max(3 * self.interval_seconds, self.interval_seconds + self.timeout_seconds)
