"""How engines are found that nobody configured."""

from pydantic import BaseModel, ConfigDict, Field


class DiscoverySettings(BaseModel):
    """Where to look for engines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    loopback: bool | None = Field(
        default=None,
        description="Look for vLLM on this host's listening TCP ports. Default: only while no engine is configured.",
    )
    interval_seconds: float = Field(
        default=30.0,
        ge=5,
        le=3600,
        description="Seconds between two looks. Default 30: an engine takes longer to load.",
    )

    def looks_on_loopback(self, configured_engines: int) -> bool:
        """Whether to look, given how many engines the configuration names."""
        return configured_engines == 0 if self.loopback is None else self.loopback
