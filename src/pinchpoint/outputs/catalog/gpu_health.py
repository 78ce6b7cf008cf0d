"""What is wrong with a GPU, or may be: errors, remapped memory, what the driver asks for, how it is set up."""

from collections.abc import Iterable

from pinchpoint.outputs.catalog.gpu import GPU, by, plain
from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, gauge
from pinchpoint.outputs.scene import Scene


def _xids(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        for count in gpu.xids:
            yield (gpu.gpu, gpu.uuid, count.xid, count.source), count.total


def _last_xids(scene: Scene) -> Iterable[Sample]:
    offset = scene.unix_offset_seconds
    for gpu in scene.snapshot.gpus:
        for count in gpu.xids:
            yield (gpu.gpu, gpu.uuid, count.xid, count.source), count.last_at + offset


def _recovery(scene: Scene) -> Iterable[Sample]:
    return (((g.gpu, g.uuid, g.recovery_action), 1) for g in scene.snapshot.gpus if g.recovery_action)


GPU_HEALTH_METRICS = (
    Metric(
        name="gpu_xid_errors_total",
        kind=Kind.COUNTER,
        help="Xid errors since the daemon started, by who told first: an NVML event or the kernel log.",
        labels=(*GPU, "xid", "source"),
        read=_xids,
    ),
    gauge(
        "gpu_xid_last_timestamp_seconds", (*GPU, "xid", "source"), _last_xids, "When the Xid came last, in Unix time."
    ),
    by("severity", "ecc_errors_total", "Memory errors that ECC found, since the driver was loaded.", Kind.COUNTER),
    by("kind", "remapped_rows", "Memory rows remapped, by cause; pending and failure are 0 or 1."),
    by("cause", "retired_pages", "Memory pages retired, by cause; pending is 0 or 1."),
    gauge(
        "gpu_recovery_action",
        (*GPU, "action"),
        _recovery,
        "What the driver asks for to bring the GPU back; none is well.",
    ),
    plain("pcie_replay_total", "PCIe packets sent again since the driver was loaded.", Kind.COUNTER),
    plain("profile_stuck", "Whether the profiling counters stand still (1) while the GPU is busy."),
    plain("persistence_mode", "Whether the driver stays loaded while nobody uses the GPU (1)."),
    plain("ecc_mode", "Whether ECC is on (1) or off (0)."),
    plain("mig_mode", "Whether the GPU is split into MIG instances (1)."),
    plain("numa_node", "NUMA node that the GPU is attached to."),
    plain("c2c_links", "Chip-to-chip links to the CPU; a GPU that has them does not live by its PCIe link."),
)
