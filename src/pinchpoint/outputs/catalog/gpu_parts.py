"""What a GPU is divided into and shared by: NVLinks, MIG instances, processes, pods. Series end with their thing."""

from collections.abc import Callable, Iterable

from pinchpoint.outputs.catalog.gpu import GPU, plain
from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, gauge, info
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import GpuProcess, MigInstance, NvLink

_MIG = (*GPU, "gpu_instance", "compute_instance")
_PROCESS = (*GPU, "pid", "kind")


def _per_link(name: str, pick: Callable[[NvLink], float | None], text: str, kind: Kind = Kind.GAUGE) -> Metric:
    def read(scene: Scene) -> Iterable[Sample]:
        return (((g.gpu, g.uuid, link.link), pick(link)) for g in scene.snapshot.gpus for link in g.nvlinks)

    return Metric(name=name, kind=kind, help=text, labels=(*GPU, "link"), read=read)


def _link_errors(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        for link in gpu.nvlinks:
            for kind, count in link.errors_total.items():
                yield (gpu.gpu, gpu.uuid, link.link, kind), count


def _per_instance(name: str, pick: Callable[[MigInstance], float | None], text: str) -> Metric:
    def read(scene: Scene) -> Iterable[Sample]:
        for gpu in scene.snapshot.gpus:
            for mig in gpu.mig_instances:
                yield (gpu.gpu, gpu.uuid, mig.gpu_instance, mig.compute_instance), pick(mig)

    return gauge(name, _MIG, read, text)


def _instances(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        for mig in gpu.mig_instances:
            yield (gpu.gpu, gpu.uuid, mig.gpu_instance, mig.compute_instance, mig.uuid, mig.profile or ""), 1


def _per_process(name: str, pick: Callable[[GpuProcess], float | None], text: str) -> Metric:
    def read(scene: Scene) -> Iterable[Sample]:
        for gpu in scene.snapshot.gpus:
            for process in gpu.processes:
                yield (gpu.gpu, gpu.uuid, str(process.pid), process.kind), pick(process)

    return gauge(name, _PROCESS, read, text)


def _processes(scene: Scene) -> Iterable[Sample]:
    for gpu in scene.snapshot.gpus:
        for process in gpu.processes:
            told = (process.command, process.container, process.pod_uid, process.mig_instance)
            yield (gpu.gpu, gpu.uuid, str(process.pid), process.kind, *(text or "" for text in told)), 1


def _pods(scene: Scene) -> Iterable[Sample]:
    return (((pod.uuid, pod.namespace, pod.pod, pod.container), 1) for pod in scene.snapshot.pods)


GPU_PARTS_METRICS = (
    _per_link("gpu_nvlink_up", lambda link: link.up, "Whether the NVLink is up (1) or down (0)."),
    _per_link("gpu_nvlink_version", lambda link: link.version, "NVLink version of the link."),
    _per_link(
        "gpu_nvlink_link_receive_bytes_total",
        lambda link: link.receive_bytes_total,
        "Bytes that the GPU received over the NVLink.",
        Kind.COUNTER,
    ),
    _per_link(
        "gpu_nvlink_link_transmit_bytes_total",
        lambda link: link.transmit_bytes_total,
        "Bytes that the GPU sent over the NVLink.",
        Kind.COUNTER,
    ),
    Metric(
        name="gpu_nvlink_errors_total",
        kind=Kind.COUNTER,
        help="Errors of the NVLink by kind.",
        labels=(*GPU, "link", "kind"),
        read=_link_errors,
    ),
    plain("nvlink_receive_bytes_total", "Bytes that the GPU received over all its NVLinks.", Kind.COUNTER),
    plain("nvlink_transmit_bytes_total", "Bytes that the GPU sent over all its NVLinks.", Kind.COUNTER),
    plain("nvlink_receive_bytes_per_second", "NVLink traffic into the GPU between the last two profiling samples."),
    plain("nvlink_transmit_bytes_per_second", "NVLink traffic out of the GPU between the last two profiling samples."),
    info("gpu_mig_instance_info", (*_MIG, "mig_uuid", "profile"), _instances, "The MIG instances of the GPU."),
    _per_instance("gpu_mig_memory_total_bytes", lambda mig: mig.memory_total_bytes, "Memory of the MIG instance."),
    _per_instance("gpu_mig_memory_used_bytes", lambda mig: mig.memory_used_bytes, "Memory in use in the MIG instance."),
    _per_instance("gpu_mig_sm_active_ratio", lambda mig: mig.sm_active_ratio, "SM activity of the MIG instance."),
    _per_instance(
        "gpu_mig_tensor_active_ratio", lambda mig: mig.tensor_active_ratio, "Tensor activity of the MIG instance."
    ),
    _per_instance(
        "gpu_mig_dram_active_ratio", lambda mig: mig.dram_active_ratio, "Memory activity of the MIG instance."
    ),
    plain("processes_seen", "Processes on the GPU; those listed one by one are capped."),
    info(
        "gpu_process_info",
        (*_PROCESS, "command", "container", "pod_uid", "gpu_instance"),
        _processes,
        "The processes on the GPU (opt-in); pod_uid is the uid of kube_pod_info.",
    ),
    _per_process("gpu_process_memory_bytes", lambda process: process.memory_bytes, "Device memory of the process."),
    _per_process("gpu_process_sm_ratio", lambda process: process.sm_ratio, "Share of SM time of the process."),
    info(
        "gpu_pod_info",
        ("uuid", "namespace", "pod", "container"),
        _pods,
        "Kubernetes containers with the GPU (join on uuid) or MIG instance (on gpu_mig_instance_info's mig_uuid).",
    ),
)
