"""What an operator can set about the GPU source."""

from pydantic import BaseModel, ConfigDict, Field


class GpuSettings(BaseModel):
    """How often and how patiently this node's GPUs are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(default=True, description="Whether NVML is used at all. Default true.")
    interval_seconds: float = Field(
        default=1.0,
        ge=0.2,
        le=300,
        description="Seconds between two readings of a GPU. Default 1: short against a diagnosis window, and a cycle "
        "costs the driver well under a millisecond; raise it if the engine feels it.",
    )
    medium_interval_seconds: float = Field(
        default=15.0,
        ge=1,
        le=3600,
        description="Seconds between two readings of what changes rarely: ECC, remapped rows, recovery action, modes, "
        "link errors. Default 15: soon enough to page on, and most of these cost the driver more than the rest.",
    )
    slow_interval_seconds: float = Field(
        default=60.0,
        ge=1,
        le=3600,
        description="Seconds between two readings of what hardly ever changes: limits, maxima, architecture. They are "
        "also read whenever the GPU changes (MIG mode, a reset). Default 60.",
    )
    pcie_throughput: bool = Field(
        default=False,
        description="Whether PCIe traffic is asked for by the call that blocks for 20 ms a direction and GPU. Default "
        "false: the driver's byte counters are used where they tell.",
    )
    processes: bool = Field(
        default=False,
        description="Whether the processes on each GPU are read: memory, SM share, command, container. Default false: "
        "each is a series, and the driver takes milliseconds to list them. Names need the host's PID namespace.",
    )
    max_processes: int = Field(
        default=64,
        ge=1,
        le=1000,
        description="How many processes of a GPU are told one by one, those with most memory first. Default 64: more "
        "than engines have, and few enough for a metrics store; how many there are is told in any case.",
    )
    deadline_seconds: float = Field(
        default=5.0,
        ge=0.2,
        le=300,
        description="Seconds after which one GPU's cycle, or NVML's start, counts as hung. Default 5: above a cold "
        "start without persistence mode, far below a human's patience.",
    )
    stale_after_seconds: float | None = Field(
        default=None,
        ge=0.4,
        description="Seconds after which a reading is withdrawn. Default: three intervals, but never less than one "
        "interval and one deadline, so that a hung GPU is called hung rather than stale.",
    )
    retry_seconds: float = Field(
        default=30.0,
        ge=0.1,
        le=3600,
        description="Seconds between two attempts at a lost GPU, and the longest back-off (from 1 s) of NVML's start. "
        "Default 30: a probe of a sick driver is not free.",
    )
    gpus_expected: int | None = Field(
        default=None,
        ge=0,
        description="How many GPUs this node should have. Default: as many NVIDIA display controllers as the PCI bus "
        "has shown since start. Set it where the bus itself can lose one before pinchpoint starts.",
    )

    @property
    def fresh_for_seconds(self) -> float:
        """The age up to which a reading is served."""
        return self.stale_after_seconds or max(3 * self.interval_seconds, self.interval_seconds + self.deadline_seconds)
