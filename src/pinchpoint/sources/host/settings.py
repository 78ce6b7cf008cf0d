"""What an operator can set about the host source."""

from pydantic import BaseModel, ConfigDict, Field


class HostSettings(BaseModel):
    """How often the host is read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(default=True, description="Whether the host is read at all. Default true.")
    interval_seconds: float = Field(
        default=5.0,
        ge=0.5,
        le=300,
        description="Seconds between two readings; each is the mean since the one before. Default 5: long against the "
        "kernel's 10 ms tick, short against a diagnosis window.",
    )
