"""What an operator can say about probes. No target is probed unless it is named here."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretStr, model_validator

from pinchpoint.snapshot import Placement
from pinchpoint.sources.http.access import TlsSettings
from pinchpoint.sources.http.base_url import BaseUrl
from pinchpoint.sources.probe.completion import complete
from pinchpoint.sources.probe.dialects import DIALECTS, DialectName
from pinchpoint.sources.probe.spend.estimate import REQUESTS, most_tokens
from pinchpoint.sources.probe.spend.settings import CapSettings, PriceSettings

HOSTED_INTERVAL_FLOOR_SECONDS = 60.0
MAX_NAME = 63  # of a target; a URL that stands for one may be longer
_DEFAULT_INTERVAL_SECONDS = {Placement.LOCAL: 30.0, Placement.HOSTED: 300.0}

Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class DeadlineSettings(BaseModel):
    """How long each stage of one probe may take. The stage whose deadline passes names the failure."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    connect: Seconds = Field(
        default=5.0,
        description="Seconds to resolve, connect and shake hands. 5: two lost SYNs and a slow resolver fit.",
    )
    first_token: Seconds = Field(
        default=30.0,
        description="Seconds from the request to the first text. 30: a queue this long is a failure to its users.",
    )
    idle: Seconds = Field(
        default=15.0, description="Seconds without progress once text has begun. 15: a preempted request gets over it."
    )
    overall: Seconds = Field(
        default=60.0, description="Seconds for the whole probe. 60: connect, first token and a slow generation fit."
    )

    @model_validator(mode="after")
    def _overall_is_the_last(self) -> Self:
        if self.overall < self.connect + self.first_token:
            raise ValueError(
                f"overall ({self.overall:g}) is less than connect + first_token ({self.connect + self.first_token:g}); "
                "raise overall, or lower the others"
            )
        return self


class ParameterSettings(BaseModel):
    """What the request may say. What a server refuses by name is left out by itself after the first refusal."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_field: Literal["max_tokens", "max_completion_tokens"] = Field(
        default="max_tokens", description="The field that limits the answer. max_tokens: what most servers understand."
    )
    stream_usage: bool = Field(
        default=True,
        description="Ask for token counts (stream_options.include_usage). true: without them TPOT counts chunks.",
    )
    continuous_usage: bool | None = Field(
        default=None,
        description="Ask for counts on each chunk (vLLM). Unset: true for local, false for hosted targets.",
    )
    ignore_eos: bool | None = Field(
        default=None,
        description="Make every answer max_tokens long (vLLM, SGLang). Unset: true for local targets, false for hosted "
        "ones, which reject it.",
    )
    temperature: float | None = Field(
        default=None,
        ge=0,
        le=2,
        description="Sampling temperature. Unset: not sent, for some models accept only their own.",
    )
    reasoning_effort: str | None = Field(
        default=None, max_length=20, description="minimal, low, … for hosted reasoning models. Unset: not sent."
    )
    extra_body: dict[str, JsonValue] = Field(
        default_factory=dict, description="Further fields of the request body, sent as they are. Default: none."
    )


class ProbeTargetSettings(BaseModel):
    """One endpoint that is sent a synthetic request at an interval."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)  # it holds a key

    name: str = Field(
        min_length=1,
        max_length=MAX_NAME,
        description="The target's name, the label of its series. Unset: the preset's.",
    )
    preset: str | None = Field(
        default=None,
        description="A provider or engine by name (openai, taotoken, vllm, …), which sets url, dialect, placement and "
        "quirks; what is written beside it wins. Unset: told by the url's host where that is a provider's.",
    )
    url: BaseUrl = Field(
        max_length=2048,
        description="Base URL, with or without /v1, e.g. http://127.0.0.1:8000. Unset: the preset's.",
    )
    dialect: DialectName = Field(
        default=DialectName.OPENAI_CHAT,
        description="The API to speak. Unset: the preset's, else openai_chat, which most servers understand.",
    )
    api_version: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9._-]{1,40}$",
        description="azure_openai: api-version (a dated one asks for the older URLs); anthropic: anthropic-version; "
        "gemini: the version in the path. Unset: the dialect's own.",
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Model to ask. Unset: the first of the server's model list.",
    )
    placement: Placement = Field(
        default=Placement.LOCAL,
        description="local (our GPUs) or hosted (an API that costs money). local: never spend unasked.",
    )
    engine: str | None = Field(
        default=None, max_length=63, description="Name of the watched engine behind this target. Unset: not known."
    )
    compare_with: list[str] = Field(
        default_factory=list,
        max_length=20,
        description="Names of the hosted targets that a local one is held against. Default: those with a model of the "
        "same family, else all.",
    )
    api_key: SecretStr | None = Field(default=None, description="API key. Unset: none is sent.")
    api_key_file: Path | None = Field(
        default=None,
        description="File with the API key, read at each probe so that it can be rotated. Unset: none.",
    )
    api_key_variable: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,99}$",
        description="Environment variable that holds the key. Unset: the preset's, at the preset's own address.",
    )
    interval_seconds: float = Field(
        default=_DEFAULT_INTERVAL_SECONDS[Placement.LOCAL],
        ge=1,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds between probes. Local 30: little load. Hosted 300, at least 60: each one is billed.",
    )
    max_tokens: int = Field(
        default=32,
        ge=16,
        le=4096,
        description="Tokens to generate. 32: enough gaps for a mean TPOT, cheap. At least 16, which some APIs demand.",
    )
    prompt_words: int = Field(
        default=64,
        ge=0,
        le=20_000,
        description="Words of filler before the task. 64: a short prefill, about 100 tokens.",
    )
    deadlines: DeadlineSettings = Field(
        default_factory=DeadlineSettings, description="Deadlines of one probe, in seconds."
    )
    parameters: ParameterSettings = Field(default_factory=ParameterSettings, description="What the request may say.")
    proxy: BaseUrl | None = Field(
        default=None,
        max_length=2048,
        description="HTTP proxy URL. Unset: none, whatever the environment's proxy variables say.",
    )
    tls: TlsSettings = Field(default=TlsSettings(), description="For https:// URLs. Default: the system's authorities.")
    price: PriceSettings | None = Field(
        default=None,
        description="What the provider bills. Unset: not known, so caps count tokens and no money is shown.",
    )
    caps: CapSettings = Field(
        default_factory=CapSettings,
        description="The most that a hosted target may spend. Default: tokens_per_day for a day of its probes.",
    )
    liveness_interval_seconds: float | None = Field(
        default=60.0,
        ge=10,
        le=86_400,
        allow_inf_nan=False,
        description="Seconds between free requests to a hosted target (its model list), which tell whether it answers. "
        "60: a minute without it is noticed, between two probes that cost. null: never.",
    )

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = complete(values)
        if values.get("interval_seconds") is None:
            hosted = values.get("placement") == Placement.HOSTED
            default = _DEFAULT_INTERVAL_SECONDS[Placement.HOSTED if hosted else Placement.LOCAL]
            values["interval_seconds"] = default
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        keys = [name for name in ("api_key", "api_key_file", "api_key_variable") if getattr(self, name) is not None]
        if len(keys) > 1:
            raise ValueError(f"target {self.name}: {' and '.join(keys)} are both set; keep one")
        if self.api_version is not None and not DIALECTS[self.dialect].versioned:
            raise ValueError(f"target {self.name}: api_version has no meaning in {self.dialect}; leave it out")
        if self.placement is Placement.HOSTED:
            if self.compare_with:
                raise ValueError(f"target {self.name}: compare_with is for local targets; name {self.name} in theirs")
            if self.interval_seconds < HOSTED_INTERVAL_FLOOR_SECONDS:
                raise ValueError(
                    f"target {self.name}: interval_seconds {self.interval_seconds:g} is too short for a hosted API, "
                    f"which bills each probe; use {HOSTED_INTERVAL_FLOOR_SECONDS:g} or more, or placement local"
                )
            if self.model is None:
                raise ValueError(
                    f"target {self.name}: a hosted target needs model, for its price depends on it; name it"
                )
        return self

    @model_validator(mode="after")
    def _affordable(self) -> Self:
        if self.placement is Placement.LOCAL:
            if self.price is not None or self.caps.are_given:
                raise ValueError(
                    f"target {self.name}: price and caps are for hosted targets; say placement: hosted, or drop them"
                )
            return self
        if self.caps.in_money and self.price is None:
            raise ValueError(f"target {self.name}: a cap in US dollars needs the price; give it, or cap the tokens")
        most = REQUESTS * most_tokens(self.prompt_words, self.max_tokens, self.parameters.extra_body).total
        for key in ("tokens_per_day", "tokens_per_month"):
            cap = getattr(self.caps, key)
            if cap is not None and cap < most:
                raise ValueError(
                    f"target {self.name}: caps.{key} {cap} is less than the {most} tokens that are set aside for one "
                    "probe, so none would be sent; raise it, or lower max_tokens or prompt_words"
                )
        return self


class ProbeSettings(BaseModel):
    """The targets. Default: none, so that nothing is called and nothing is spent.

    That their names differ is checked where a configuration is read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    targets: list[ProbeTargetSettings] = Field(
        default_factory=list, max_length=100, description="Endpoints to probe. Default: none."
    )
    caps: CapSettings = Field(
        default_factory=CapSettings,
        description="The most that all hosted targets may spend together. Default: no limit beside their own.",
    )

    @model_validator(mode="after")
    def _priced(self) -> Self:
        unpriced = [t.name for t in self.targets if t.placement is Placement.HOSTED and t.price is None]
        if self.caps.in_money and unpriced:
            raise ValueError(
                f"caps in US dollars need the price of each hosted target; give that of {', '.join(unpriced)}, or cap "
                "the tokens"
            )
        return self

    @model_validator(mode="after")
    def _compared_with_hosted(self) -> Self:
        hosted = [target.name for target in self.targets if target.placement is Placement.HOSTED]
        for target in self.targets:
            if unknown := [name for name in target.compare_with if name not in hosted]:
                raise ValueError(
                    f"target {target.name}: compare_with names no hosted target ({', '.join(unknown)}); "
                    f"hosted are: {', '.join(hosted) or 'none'}"
                )
        return self
