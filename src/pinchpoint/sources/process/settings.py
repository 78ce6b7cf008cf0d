"""What an operator can set about engines' processes."""

from pydantic import BaseModel, ConfigDict, Field


class ProcessSettings(BaseModel):
    """Whether and how often the processes of engines on this host are looked at."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Whether the processes of engines on this host are looked at: their command line and start-up log "
        "for what they don't export, their process tree for the GPUs that they are on. Default true; of a command line "
        "only known options are read. Other users' processes show themselves to root alone.",
    )
    interval_seconds: float = Field(
        default=30.0,
        ge=1,
        le=3600,
        description="Seconds between two looks. Default 30: a restarted engine is looked at at once, so this is for "
        "workers that come and go.",
    )
    deadline_seconds: float = Field(
        default=10.0,
        ge=0.5,
        le=300,
        description="Seconds after which a look counts as hung, as it may with a process that hangs in its driver. "
        "Default 10: it takes a fraction of a second.",
    )
