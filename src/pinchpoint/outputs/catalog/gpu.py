"""The GPU family. A GPU that does not answer keeps ``gpu_up 0``, its state and its counters; its readings are gone."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import GpuState

GPU = ("gpu", "uuid")


def _plain(field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each GPU: the reading's field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((g.gpu, g.uuid), getattr(g, field)) for g in scene.snapshot.gpus)

    return Metric(name=f"gpu_{field}", kind=kind, help=text, labels=GPU, read=read)


def _by(label: str, field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each GPU by one more label: the reading's mapping of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((g.gpu, g.uuid, key), n) for g in scene.snapshot.gpus for key, n in getattr(g, field).items())

    return Metric(name=f"gpu_{field}", kind=kind, help=text, labels=(*GPU, label), read=read)


def _info(scene: Scene) -> Iterable[Sample]:
    return (((g.gpu, g.uuid, g.name or "", g.pci_bus_id or "", g.driver or ""), 1) for g in scene.snapshot.gpus)


def _state(scene: Scene) -> Iterable[Sample]:
    return (((g.gpu, g.uuid, state), g.state is state) for g in scene.snapshot.gpus for state in GpuState)


def _links(scene: Scene) -> Iterable[Sample]:
    uuids = {g.gpu: g.uuid for g in scene.snapshot.gpus}
    return (((link.gpu, uuids.get(link.gpu, ""), link.peer, link.link), 1) for link in scene.snapshot.links)


GPU_METRICS = (
    _plain("up", "Whether the GPU answers (1) or is lost, hung or closed to us (0); gpu_state says which."),
    info("gpu_info", (*GPU, "name", "pci_bus_id", "driver"), _info, "What the GPU is."),
    gauge("gpu_state", (*GPU, "state"), _state, "The GPU's state: 1 for the one it is in."),
    _plain("utilization_ratio", "Share of time with a kernel resident, cached from NVML; not a share of peak."),
    _plain("memory_used_bytes", "Device memory in use, without what the driver reserves."),
    _plain("memory_total_bytes", "Device memory there is."),
    _plain("memory_reserved_bytes", "Device memory that the driver and firmware keep for themselves."),
    _plain("memory_controller_utilization_ratio", "Share of time in which device memory was read or written."),
    _plain("sm_active_ratio", "Share of cycles in which a streaming multiprocessor had a warp, mean over all."),
    _plain("tensor_active_ratio", "Share of cycles in which the tensor pipes were busy."),
    _plain("dram_active_ratio", "Share of cycles in which the memory interface moved data."),
    _plain("power_watts", "Power drawn."),
    _plain("power_limit_watts", "Power limit that is enforced."),
    _plain("energy_joules_total", "Energy used since the driver was loaded.", Kind.COUNTER),
    _by("sensor", "temperature_celsius", "Temperature by sensor."),
    _by("domain", "clock_hertz", "Clock by domain."),
    _by("domain", "clock_max_hertz", "Highest clock by domain."),
    _by("reason", "throttle_active", "Whether the clocks are held down now for this reason (1) or not (0)."),
    _by("reason", "throttle_seconds_total", "Time in which clocks were held down for this reason.", Kind.COUNTER),
    _plain("pcie_link_generation", "PCIe generation of the link now; it falls when the GPU idles."),
    _plain("pcie_link_generation_max", "PCIe generation that GPU and slot can do."),
    _plain("pcie_link_width", "PCIe lanes of the link now."),
    _plain("pcie_link_width_max", "PCIe lanes that GPU and slot can do."),
    _plain("pcie_receive_bytes_per_second", "PCIe traffic into the GPU over NVML's last 20 ms."),
    _plain("pcie_transmit_bytes_per_second", "PCIe traffic out of the GPU over NVML's last 20 ms."),
    _by("severity", "ecc_errors_total", "Memory errors that ECC found, since the driver was loaded.", Kind.COUNTER),
    _by("xid", "xid_errors_total", "Xid errors seen since the daemon started.", Kind.COUNTER),
    info(
        "gpu_peer_link_info", (*GPU, "peer", "link"), _links, "How two GPUs are connected, in nvidia-smi topo's words."
    ),
    gauge(
        "gpus_expected", (), lambda scene: [((), scene.self_report.gpus_expected)], "GPUs that this node should have."
    ),
    gauge("gpus_visible", (), lambda scene: [((), scene.self_report.gpus_visible)], "GPUs that the driver shows."),
)
