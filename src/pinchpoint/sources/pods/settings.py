"""What an operator can set about pods."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class PodSettings(BaseModel):
    """Where the kubelet answers and how often it is asked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    enabled: bool = Field(
        default=True,
        description="Whether GPUs are attributed to pods where the kubelet's socket exists. Default true: without the "
        "socket nothing happens.",
    )
    socket: Path = Field(
        default=Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        description="The kubelet's pod-resources socket. Default: where the kubelet makes it; in a container, mount "
        "its folder, for a restarted kubelet makes the socket anew.",
    )
    interval_seconds: float = Field(
        default=30.0,
        ge=1,
        le=3600,
        description="Seconds between two questions. Default 30: pods with GPUs live for minutes, and the kubelet "
        "allows few questions a second to all who ask.",
    )
    timeout_seconds: float = Field(
        default=5.0,
        ge=0.1,
        le=60,
        description="Seconds after which the kubelet's answer is no longer waited for. Default 5: it answers from "
        "memory within milliseconds.",
    )

    @property
    def fresh_for_seconds(self) -> float:
        """The age up to which an answer is served: a pod that has ended must not keep its GPU for long."""
        return 3 * self.interval_seconds
