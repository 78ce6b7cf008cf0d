"""What an operator can choose about the HTTP server."""

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pinchpoint.outputs.web.listen import split_address

TAKEN_PATHS = ("/api", "/probe", "/-/", "/static", "/favicon")


class WebSettings(BaseModel):
    """The HTTP server. TLS and authentication belong to a proxy in front of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen_address: str = Field(
        default=":10770",
        description="HOST:PORT, [IPV6]:PORT, or :PORT for every interface; port 0 lets the system choose. Default "
        ":10770, outside the crowded 9100-9999 range of Prometheus's port list.",
    )
    telemetry_path: str = Field(
        default="/metrics", description="Path of the metrics. Default /metrics, as Prometheus expects."
    )
    enable_lifecycle: bool = Field(
        default=False,
        description="Allow POST /-/reload, and with a token (gpu.pause_token) POST /-/gpu/pause and /-/gpu/resume. "
        "Default off, as in Prometheus: whoever reaches the port could call it.",
    )
    max_requests: int = Field(
        default=40,
        ge=1,
        le=10_000,
        description="Scrapes answered at the same time; more get 503. Default 40, as in the exporter toolkit.",
    )

    @field_validator("listen_address")
    @classmethod
    def _splits(cls, value: str) -> str:
        split_address(value)
        return value

    @field_validator("telemetry_path")
    @classmethod
    def _is_free(cls, value: str) -> str:
        if not value.startswith("/") or value == "/" or value.startswith(TAKEN_PATHS) or set(value) & set("{}?# "):
            raise ValueError(f"{value!r} is no free path: it starts with / and is not /, {', '.join(TAKEN_PATHS)}")
        return value
