"""Whose GPUs are whose, as far as the processes on them tell."""

from collections.abc import Collection, Iterable

from pinchpoint.snapshot.gpu import GpuReading


def gpus_of_process_tree(pids: Collection[int], gpus: Iterable[GpuReading]) -> tuple[str, ...]:
    """The GPUs (``GpuReading.gpu``) on which one of ``pids`` is: a process and its descendants, in the host's numbers.

    Empty is *not known* rather than *none*: processes are read only when asked for, and the smallest may be cut off.
    """
    wanted = frozenset(pids)
    return tuple(gpu.gpu for gpu in gpus if any(process.pid in wanted for process in gpu.processes))
