"""Who is on a GPU: its processes, their memory and their share of the SMs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pinchpoint.snapshot import GpuProcess, Reason
from pinchpoint.sources.gpu.host_pids import HostPids
from pinchpoint.sources.gpu.nvml import FieldAnswers, NvmlGpu
from pinchpoint.sources.gpu.rows import Answer, Tier, number

KINDS = {"compute": "Compute", "graphics": "Graphics", "mps": "MPSCompute"}
_COMPUTE = frozenset({"compute", "mps"})
HIGHEST_PID = 1 << 22  # of any Linux: PID_MAX_LIMIT
NO_INSTANCE = 2**32 - 1
_CLOCKS_APART_SECONDS = 60.0  # the driver stamps samples with the wall clock
_bytes, _percent = number(highest=1e14), number(0.01)


@dataclass(slots=True)
class _Seen:
    """One process, which may be of several kinds."""

    memory_bytes: float | None
    mig_instance: str | None
    kinds: list[str] = field(default_factory=list)


class Processes:
    """Lists them anew at each reading: one that has ended leaves nothing behind."""

    tier = Tier.MEDIUM
    fields = ()

    def __init__(self, nvml: NvmlGpu, most: int, host: HostPids) -> None:
        self._nvml, self._most, self._host = nvml, most, host
        self._sampled_us = 0  # the newest sample of SM time that was used

    def read(self, _at: float, _fields: FieldAnswers, so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """``processes``: the ``most`` that use most memory; ``processes_seen``: how many there are.

        One impossible process id puts the whole list in doubt: some drivers (535.43 to 535.86) fill another struct.
        """
        seen = _alive(self._nvml, self._host, KINDS, split=so_far.get("mig_mode") is True)
        if isinstance(seen, Reason):
            return {"processes": seen, "processes_seen": seen}
        sm_ratios = self._sm_ratios(seen)
        largest = sorted(seen, key=lambda pid: (-(seen[pid].memory_bytes or 0.0), pid))[: self._most]
        unknown: dict[str, Answer] = {} if self._host.visible else {"process_info.command": Reason.FOREIGN_PIDS}
        if isinstance(sm_ratios, Reason):
            unknown["process_sm_ratio"] = sm_ratios
        known = {} if isinstance(sm_ratios, Reason) else sm_ratios
        listed = tuple(self._process(pid, seen[pid], known.get(pid)) for pid in sorted(largest))
        ids = {"process_ids": _computing(seen)} if self._host.visible else {}
        return {"processes": listed, "processes_seen": float(len(seen))} | ids | unknown

    def _process(self, pid: int, seen: _Seen, sm_ratio: float | None) -> GpuProcess:
        told = self._host.describe(pid)
        return GpuProcess(
            pid=pid,
            kind="+".join(seen.kinds),
            memory_bytes=seen.memory_bytes,
            sm_ratio=sm_ratio,
            command=told.command,
            container=told.container,
            pod_uid=told.pod_uid,
            mig_instance=seen.mig_instance,
        )

    def _sm_ratios(self, pids: Iterable[int]) -> dict[int, float] | Reason:
        """Share of SM time since the last reading; the driver lists only who had any, and sometimes junk besides."""
        samples = self._nvml.ask_list("nvmlDeviceGetProcessUtilization", self._sampled_us)
        if isinstance(samples, Reason):
            return samples
        ratios = dict.fromkeys(pids, 0.0)
        latest_us = (time.time() + _CLOCKS_APART_SECONDS) * 1e6
        for sample in sorted(samples, key=lambda sample: sample.timeStamp):
            ratio = _percent(sample.smUtil)
            if sample.pid in ratios and sample.timeStamp <= latest_us and not isinstance(ratio, Reason):
                ratios[sample.pid] = ratio
                self._sampled_us = max(self._sampled_us, sample.timeStamp)
        return ratios


class ProcessIds:
    """The ids alone of those that compute: two calls, and nothing of /proc but whether they live."""

    tier = Tier.MEDIUM
    fields = ()

    def __init__(self, nvml: NvmlGpu, host: HostPids) -> None:
        self._nvml, self._host = nvml, host

    def read(self, _at: float, _fields: FieldAnswers, so_far: Mapping[str, Answer]) -> dict[str, Answer]:
        """``process_ids``; where the driver does not tell, nothing is said of it, since nobody asked for them."""
        kinds = {kind: KINDS[kind] for kind in _COMPUTE}
        seen = _alive(self._nvml, self._host, kinds, split=so_far.get("mig_mode") is True)
        return {} if isinstance(seen, Reason) else {"process_ids": _computing(seen)}


def _computing(seen: Mapping[int, _Seen]) -> tuple[int, ...]:
    return tuple(sorted(pid for pid, process in seen.items() if not _COMPUTE.isdisjoint(process.kinds)))


def _alive(nvml: NvmlGpu, host: HostPids, kinds: Mapping[str, str], *, split: bool) -> dict[int, _Seen] | Reason:
    """Those of ``kinds`` that live, as far as that can be known."""
    seen = _seen(nvml, kinds, split=split)
    if isinstance(seen, Reason):
        return seen
    if not all(0 < pid <= HIGHEST_PID for pid in seen):
        return Reason.INVALID
    return {pid: process for pid, process in seen.items() if host.alive(pid)} if host.visible else seen


def _seen(nvml: NvmlGpu, kinds: Mapping[str, str], *, split: bool) -> dict[int, _Seen] | Reason:
    """Every process by its id, or why they can't be told: a part of them would be a wrong count."""
    seen: dict[int, _Seen] = {}
    refused = None
    for kind, word in kinds.items():
        rows = _running(nvml, f"nvmlDeviceGet{word}RunningProcesses", split=split)
        if isinstance(rows, Reason):
            refused = rows
            if rows is not Reason.NOT_SUPPORTED:
                return rows
            continue
        for row in rows:
            _add(seen, kind, row)
    return refused if refused and not seen else seen


def _add(seen: dict[int, _Seen], kind: str, row: Any) -> None:
    """In two lists with the same memory, a process is one that does both."""
    size = _bytes(row.usedGpuMemory) if row.usedGpuMemory is not None else Reason.NOT_SUPPORTED
    instance = None if row.gpuInstanceId == NO_INSTANCE else str(row.gpuInstanceId)
    process = seen.setdefault(row.pid, _Seen(None, instance))
    if not isinstance(size, Reason):
        process.memory_bytes = max(size, process.memory_bytes or 0.0)
    if kind not in process.kinds:
        process.kinds.append(kind)


def _running(nvml: NvmlGpu, call: str, *, split: bool) -> list[Any] | Reason:
    """A split card tells of its processes only whom it trusts; each of its instances tells anybody."""
    rows = _first_list(nvml, call)
    if rows is not Reason.ACCESS_DENIED or not split:
        return rows
    instances = nvml.instances()
    if isinstance(instances, Reason):
        return instances
    lists = [_first_list(mig, call) for mig in instances.values()]
    return [row for rows in lists if not isinstance(rows, Reason) for row in rows]


def _first_list(nvml: NvmlGpu, call: str) -> list[Any] | Reason:
    rows = nvml.ask_list(f"{call}_v3")
    return nvml.ask_list(f"{call}_v2") if rows is Reason.NOT_SUPPORTED else rows
