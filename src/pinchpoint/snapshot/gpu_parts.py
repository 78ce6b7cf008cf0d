"""What a GPU is divided into and shared by: NVLinks, MIG instances, processes, pods; and its Xid errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class XidCount:
    """How often one Xid code came since the daemon started, and when last (``last_at``: the readings' clock).

    ``source`` is who told first: ``nvml`` (an event) or ``kernel`` (the log, for those that NVML misses). An error that
    both tell is counted once.
    """

    xid: str
    source: str
    total: float
    last_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NvLink:
    """One NVLink of a GPU. ``remote`` says what is at its other end: gpu, switch, cpu; ``remote_pci_bus_id`` which."""

    link: str
    up: bool | None = None
    version: float | None = None
    remote: str | None = None
    remote_pci_bus_id: str | None = None
    receive_bytes_total: float | None = None
    transmit_bytes_total: float | None = None
    errors_total: Mapping[str, float] = field(default_factory=dict)  # by kind: crc, replay, recovery, …


# The families of a recording's ``gpu.jsonl``, each an object by link, and the field of ``NvLink`` that each is.
NVLINK_FAMILIES: Mapping[str, str] = {
    "nvlink_up": "up",
    "nvlink_version": "version",
    "nvlink_remote": "remote",
    "nvlink_remote_pci_bus_id": "remote_pci_bus_id",
    "nvlink_link_receive_bytes_total": "receive_bytes_total",
    "nvlink_link_transmit_bytes_total": "transmit_bytes_total",
    "nvlink_errors_total": "errors_total",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MigInstance:
    """One MIG compute instance: its share of a card. Utilisation and power belong to the card, never to it.

    Memory and activity are those of its GPU instance, told by the first of its compute instances alone: what several
    share must not be counted several times. ``index`` is NVML's on the card.
    """

    uuid: str
    gpu_instance: str
    compute_instance: str
    index: int | None = None
    profile: str | None = None  # 1g.10gb
    memory_total_bytes: float | None = None
    memory_used_bytes: float | None = None
    sm_active_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """One process on a GPU. ``pid`` is the host's, also inside a container. Names are untrusted text."""

    pid: int
    kind: str  # compute, graphics, mps
    memory_bytes: float | None = None
    sm_ratio: float | None = None
    command: str | None = None
    container: str | None = None  # id, 64 hexadecimal digits
    pod_uid: str | None = None
    mig_instance: str | None = None  # GPU instance id


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuPod:
    """A Kubernetes container that was given a GPU or a MIG instance, as the kubelet says."""

    uuid: str
    namespace: str
    pod: str
    container: str
