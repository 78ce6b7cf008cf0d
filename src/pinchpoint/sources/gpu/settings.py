"""What an operator can set about the GPU source."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

SHORTEST_TOKEN = 16
MAX_TOKEN_FILE_BYTES = 65_536


class GpuSettings(BaseModel):
    """How often and how patiently this node's GPUs are read."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

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
    processes: bool | None = Field(
        default=None,
        description="Whether the processes on each GPU are told one by one: memory, SM share, command, container. "
        "Default: no, for each is a series; only their ids are read, which tells the GPUs of an engine on this host. "
        "False: not even those. Both need the host's PID namespace.",
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
    kernel_log: bool | Path | None = Field(
        default=None,
        description="Whether Xid errors are also read from the kernel log, for NVML delivers no event for some (79, "
        "119, 120): true is /dev/kmsg, a path is a file of kernel messages, such as /var/log/kern.log. Default: "
        "/dev/kmsg where pinchpoint may read it (root or CAP_SYSLOG), else not, in silence. An error that both tell "
        "of counts once.",
    )
    pause_token: SecretStr | None = Field(
        default=None,
        description="Bearer token, of 16 characters or more, that POST /-/gpu/pause and /-/gpu/resume ask for; they "
        "shut NVML down so that a GPU can be reset or unbound, and start it again. Default: none, and both refuse.",
    )
    pause_token_file: Path | None = Field(
        default=None, description="File that holds the pause token, instead of it. Default: none."
    )

    @field_validator("kernel_log")
    @classmethod
    def _is_a_place(cls, value: bool | Path | None) -> bool | Path | None:
        if isinstance(value, Path) and not value.is_absolute():
            raise ValueError(f"{str(value)!r} is neither true, false nor an absolute path; give one of them")
        return value

    @model_validator(mode="after")
    def _fresh_until_the_next(self) -> Self:
        if self.stale_after_seconds is not None and self.stale_after_seconds <= self.interval_seconds:
            raise ValueError(
                "stale_after_seconds is not above interval_seconds, so every GPU would be called hung; raise it"
            )
        return self

    @model_validator(mode="after")
    def _one_good_token(self) -> Self:
        self.token()
        return self

    def token(self) -> SecretStr | None:
        """The pause token, from where it is kept. Reads ``pause_token_file``. Raises ValueError."""
        if self.pause_token is not None and self.pause_token_file is not None:
            raise ValueError("pause_token and pause_token_file are both given; keep one")
        if self.pause_token_file is not None:
            text = _read_token(self.pause_token_file)
        elif self.pause_token is not None:
            text = self.pause_token.get_secret_value()
        else:
            return None
        if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError(
                f"the pause token is no single word of {SHORTEST_TOKEN} or more ASCII characters; "
                "make one with: openssl rand -hex 32"
            )
        return SecretStr(text)

    @property
    def fresh_for_seconds(self) -> float:
        """The age up to which a reading is served."""
        return self.stale_after_seconds or max(3 * self.interval_seconds, self.interval_seconds + self.deadline_seconds)


def _read_token(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MAX_TOKEN_FILE_BYTES).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"pause_token_file {path} can't be read ({error}); make it readable to pinchpoint") from None
