"""The GPU family. A GPU that does not answer keeps ``gpu_up 0``, its state and its counters; its readings are gone."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import GpuState, Reason

GPU = ("gpu", "uuid")


def plain(field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each GPU: the reading's field of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((g.gpu, g.uuid), getattr(g, field)) for g in scene.snapshot.gpus)

    return Metric(name=f"gpu_{field}", kind=kind, help=text, labels=GPU, read=read)


def by(label: str, field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each GPU by one more label: the reading's mapping of the same name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((g.gpu, g.uuid, key), n) for g in scene.snapshot.gpus for key, n in getattr(g, field).items())

    return Metric(name=f"gpu_{field}", kind=kind, help=text, labels=(*GPU, label), read=read)


def _info(scene: Scene) -> Iterable[Sample]:
    for g in scene.snapshot.gpus:
        facts = (g.name, g.pci_bus_id, g.driver, g.nvml, g.architecture, g.memory_model, g.virtualization)
        yield (g.gpu, g.uuid, *(fact or "" for fact in facts)), 1


def _state(scene: Scene) -> Iterable[Sample]:
    return (((g.gpu, g.uuid, state), g.state is state) for g in scene.snapshot.gpus for state in GpuState)


def _paused(scene: Scene) -> Iterable[Sample]:
    if absence := scene.snapshot.absence("gpu"):
        return [((), absence.reason is Reason.PAUSED)]
    return [((), 0.0)] if scene.snapshot.gpus else []


def _links(scene: Scene) -> Iterable[Sample]:
    uuids = {g.gpu: g.uuid for g in scene.snapshot.gpus}
    return (((link.gpu, uuids.get(link.gpu, ""), link.peer, link.link, link.p2p), 1) for link in scene.snapshot.links)


def _last_success(scene: Scene) -> Iterable[Sample]:
    offset = scene.unix_offset_seconds
    return (((g.gpu, g.uuid), g.last_success_at + offset) for g in scene.snapshot.gpus if g.last_success_at is not None)


GPU_METRICS = (
    plain("up", "Whether the GPU answers (1) or is lost, hung or closed to us (0); gpu_state says which."),
    gauge("gpu_last_success_timestamp_seconds", GPU, _last_success, "When the GPU last gave a reading, in Unix time."),
    plain("missed_cycles_total", "Readings that did not come because the one before took too long.", Kind.COUNTER),
    by("metric", "invalid_samples_total", "Values dropped because they can't be: blanks of the driver.", Kind.COUNTER),
    info(
        "gpu_info",
        (*GPU, "name", "pci_bus_id", "driver", "nvml", "architecture", "memory_model", "virtualization"),
        _info,
        "What the GPU is, and the versions of the driver and of NVML's library.",
    ),
    gauge("gpu_state", (*GPU, "state"), _state, "The GPU's state: 1 for the one it is in."),
    plain("utilization_ratio", "Share of time with a kernel resident, cached from NVML; not a share of peak."),
    plain("memory_used_bytes", "Device memory in use, without what the driver reserves."),
    plain("memory_total_bytes", "Device memory there is."),
    plain("memory_reserved_bytes", "Device memory that the driver and firmware keep for themselves."),
    plain("memory_controller_utilization_ratio", "Share of time in which device memory was read or written."),
    plain("sm_active_ratio", "Share of cycles in which a streaming multiprocessor had a warp, mean over all."),
    plain("sm_occupancy_ratio", "Share of the warps that the streaming multiprocessors could hold."),
    plain("tensor_active_ratio", "Share of cycles in which the tensor pipes were busy."),
    plain("dram_active_ratio", "Share of cycles in which the memory interface moved data."),
    plain("power_watts", "Power drawn."),
    plain("power_limit_watts", "Power limit that is enforced."),
    plain("power_limit_default_watts", "Power limit that the card came with."),
    plain("energy_joules_total", "Energy used since the driver was loaded.", Kind.COUNTER),
    by("sensor", "temperature_celsius", "Temperature by sensor."),
    by("domain", "clock_hertz", "Clock by domain."),
    by("domain", "clock_max_hertz", "Highest clock by domain."),
    by("reason", "throttle_active", "Whether the clocks are held down now for this reason (1) or not (0)."),
    by(
        "reason",
        "throttle_seconds_total",
        "Time in which clocks were held down for this reason; hw_slowdown includes heat and power brake.",
        Kind.COUNTER,
    ),
    plain("pcie_link_generation", "PCIe generation of the link now; it falls when the GPU idles."),
    plain("pcie_link_generation_max", "PCIe generation that GPU and slot can do."),
    plain("pcie_link_width", "PCIe lanes of the link now."),
    plain("pcie_link_width_max", "PCIe lanes that GPU and slot can do."),
    plain(
        "pcie_receive_bytes_per_second",
        "PCIe traffic into the GPU since the reading before, or over NVML's last 20 ms.",
    ),
    plain("pcie_transmit_bytes_per_second", "PCIe traffic out of the GPU, likewise."),
    info(
        "gpu_peer_link_info",
        (*GPU, "peer", "link", "p2p"),
        _links,
        "How two GPUs are connected, in nvidia-smi topo's words, and whether one can read the other's memory.",
    ),
    gauge(
        "gpus_expected", (), lambda scene: [((), scene.self_report.gpus_expected)], "GPUs that this node should have."
    ),
    gauge("gpu_paused", (), _paused, "Whether NVML is shut down on request (1), so that a GPU can be reset."),
    gauge("gpus_visible", (), lambda scene: [((), scene.self_report.gpus_visible)], "GPUs that the driver shows."),
)
