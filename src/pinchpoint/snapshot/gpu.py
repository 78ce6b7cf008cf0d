"""One GPU at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pinchpoint.snapshot.gpu_parts import GpuProcess, MigInstance, NvLink, XidCount


class GpuState(StrEnum):
    """Whether a known GPU answers. Anything but ``OK`` means that its readings are gone."""

    OK = "ok"
    LOST = "lost"
    RESET_REQUIRED = "reset_required"
    HUNG = "hung"
    ACCESS_DENIED = "access_denied"
    UNKNOWN = "unknown"


class ThrottleReason(StrEnum):
    """NVML clock-event reasons that slow a card down (idle is not one). Values are label values and recording keys."""

    SW_POWER_CAP = "sw_power_cap"
    HW_SLOWDOWN = "hw_slowdown"
    HW_THERMAL_SLOWDOWN = "hw_thermal_slowdown"
    HW_POWER_BRAKE = "hw_power_brake"
    SW_THERMAL_SLOWDOWN = "sw_thermal_slowdown"
    SYNC_BOOST = "sync_boost"
    APPLICATIONS_CLOCKS = "applications_clocks"
    DISPLAY_CLOCKS = "display_clocks"


@dataclass(frozen=True, slots=True)
class PeerLink:
    """How two GPUs are connected: ``link`` is ``nvidia-smi topo -m``'s word (NV18, PIX, PXB, PHB, NODE, SYS).

    ``p2p`` says whether one can read the other's memory: ok, or why not (chipset_not_supported, …); empty is unknown.
    """

    gpu: str
    peer: str
    link: str
    p2p: str = ""

    @property
    def peer_to_peer(self) -> bool:
        """One reads the other's memory, as far as is known; else their data goes through the host."""
        return self.p2p in ("", "ok")


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReading:
    """One GPU's readings of one cycle.

    Field names are the metric names without ``pinchpoint_gpu_``, which are also the keys of a recording's
    ``gpu.jsonl``. ``gpu`` is the NVML index as text (information only: identity is ``uuid``). A lost, hung or
    inaccessible GPU is a reading with ``up=False``, its ``state``, and nothing else but identity and counters.
    """

    gpu: str
    uuid: str
    at: float
    up: bool = True
    state: GpuState = GpuState.OK
    detail: str = ""  # for people, when not up: cause and remedy on one line
    name: str | None = None
    pci_bus_id: str | None = None
    driver: str | None = None
    minor_number: str | None = None  # of its device node: 3 is /dev/nvidia3, whatever the index
    utilization_ratio: float | None = None  # share of TIME with a kernel resident, never a share of peak
    memory_controller_utilization_ratio: float | None = None
    memory_total_bytes: float | None = None
    memory_used_bytes: float | None = None  # NVML v2: without what the driver reserves
    memory_reserved_bytes: float | None = None
    sm_active_ratio: float | None = None
    sm_occupancy_ratio: float | None = None
    tensor_active_ratio: float | None = None
    dram_active_ratio: float | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    energy_joules_total: float | None = None
    temperature_celsius: Mapping[str, float] = field(default_factory=dict)  # by sensor: gpu, memory
    clock_hertz: Mapping[str, float] = field(default_factory=dict)  # by domain: graphics, sm, memory, video
    clock_max_hertz: Mapping[str, float] = field(default_factory=dict)
    throttle_active: Mapping[str, float] = field(default_factory=dict)  # ThrottleReason -> 0 or 1
    throttle_seconds_total: Mapping[str, float] = field(default_factory=dict)  # ThrottleReason -> seconds
    pcie_link_generation: float | None = None
    pcie_link_generation_max: float | None = None
    pcie_link_width: float | None = None
    pcie_link_width_max: float | None = None
    pcie_receive_bytes_per_second: float | None = None
    pcie_transmit_bytes_per_second: float | None = None
    pcie_replay_total: float | None = None
    ecc_errors_total: Mapping[str, float] = field(default_factory=dict)  # by severity: correctable, uncorrectable
    xid_errors_total: Mapping[str, float] = field(default_factory=dict)  # by Xid code
    xids: tuple[XidCount, ...] = ()  # the same errors by source, with their last time
    remapped_rows: Mapping[str, float] = field(default_factory=dict)  # correctable, uncorrectable, pending, failure
    retired_pages: Mapping[str, float] = field(default_factory=dict)  # single_bit, double_bit, pending
    recovery_action: str | None = None  # none, gpu_reset, node_reboot, drain_p2p, drain_and_reset, …
    nvlinks: tuple[NvLink, ...] = ()
    nvlink_receive_bytes_total: float | None = None  # of all links
    nvlink_transmit_bytes_total: float | None = None
    nvlink_receive_bytes_per_second: float | None = None
    nvlink_transmit_bytes_per_second: float | None = None
    mig_instances: tuple[MigInstance, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    processes_seen: float | None = None  # how many there are; ``processes`` is capped
    process_ids: tuple[int, ...] | None = None  # all that compute, the host's numbers; None: not known
    profile_stuck: bool | None = None  # busy, and the profiling counters say that no SM is: they need a new start
    power_limit_default_watts: float | None = None
    architecture: str | None = None
    nvml: str | None = None  # the library's version
    persistence_mode: bool | None = None
    ecc_mode: bool | None = None
    mig_mode: bool | None = None
    virtualization: str | None = None  # none, passthrough, vgpu, …
    memory_model: str | None = None  # framebuffer, or unified (GB10): then there is no memory of its own to tell
    numa_node: float | None = None
    c2c_links: float | None = None  # to the CPU; a card that has them does not live by its PCIe link
    last_success_at: float | None = None  # when it last gave a reading; ``at`` while it is up
    missed_cycles_total: float | None = None  # readings that were due and did not come, because a cycle took too long
    invalid_samples_total: Mapping[str, float] = field(default_factory=dict)  # field -> values dropped as impossible
    unavailable: Mapping[str, str] = field(default_factory=dict)  # field name -> Reason, for what this GPU can't say
