"""Whose GPUs are whose, as far as processes and pods tell. Pure; where nothing tells, nothing is said."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pinchpoint.snapshot.gpu import GpuReading
from pinchpoint.snapshot.gpu_parts import GpuPod


def gpus_of_process_tree(pids: Collection[int], gpus: Iterable[GpuReading]) -> tuple[str, ...]:
    """The GPUs (``GpuReading.gpu``) on which one of ``pids`` is: a process and its descendants, in the host's numbers.

    Empty is *not known* rather than *none*: an engine that starts is on no GPU yet, and NVML may not tell.
    """
    wanted = frozenset(pids)
    return tuple(gpu.gpu for gpu in gpus if not wanted.isdisjoint(pids_on(gpu) or ()))


def pids_on(gpu: GpuReading) -> frozenset[int] | None:
    """The processes on a GPU; ``None`` where that is not known, as of one that is lost."""
    if not gpu.up or (gpu.process_ids is None and not gpu.processes):
        return None
    return frozenset(gpu.process_ids or ()) | {process.pid for process in gpu.processes}


def gpus_of_pod(namespace: str, pod: str, pods: Iterable[GpuPod], gpus: Iterable[GpuReading]) -> tuple[str, ...]:
    """The GPUs that the kubelet gave to a pod, also those of which it has a MIG instance alone."""
    own = {each.uuid for each in pods if (each.namespace, each.pod) == (namespace, pod)}
    return tuple(g.gpu for g in gpus if g.uuid in own or any(mig.uuid in own for mig in g.mig_instances))


def split_by_process(
    gpus: Sequence[str], pids_by_replica: Mapping[str, Collection[int]], readings: Sequence[GpuReading]
) -> dict[str, tuple[str, ...]]:
    """Which of an engine's ``gpus`` each replica's processes are on; those that no replica is on are left out."""
    told = {replica: gpus_of_process_tree(pids, readings) for replica, pids in pids_by_replica.items()}
    own = {replica: tuple(gpu for gpu in gpus if gpu in found) for replica, found in told.items()}
    return {replica: found for replica, found in own.items() if found}


def split_evenly(gpus: Sequence[str], replicas: Sequence[str], each: int | None) -> dict[str, tuple[str, ...]]:
    """``each`` GPUs to every replica, in order; empty unless that comes out even."""
    if not each or not replicas or len(gpus) != each * len(replicas):
        return {}
    return {name: tuple(gpus[n * each : (n + 1) * each]) for n, name in enumerate(replicas)}
