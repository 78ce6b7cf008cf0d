"""Joins to an engine's reading what its metrics don't say: its process's facts, its GPUs, who shares them.

What the operator said wins. A reading stays the same object as long as nothing of that changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pinchpoint.daemon.local_facts import with_local
from pinchpoint.snapshot import EngineFacts, EngineProcess, EngineReading, EngineTarget, GpuPod, GpuReading
from pinchpoint.snapshot.ownership import (
    gpus_of_pod,
    gpus_of_process_tree,
    pids_on,
    split_by_process,
    split_evenly,
)
from pinchpoint.sources.discovery import LoopbackFinder
from pinchpoint.sources.process import Looked

MAX_SHARERS = 4  # named in warnings


@dataclass(frozen=True, slots=True)
class _World:
    """What is the same for all engines at one tick, GPU readings without what changes all the time."""

    gpus: Sequence[GpuReading] = field(default=(), compare=False)
    on_gpus: tuple[tuple[str, str, bool, frozenset[int] | None], ...] = ()
    pods: tuple[GpuPod, ...] = ()


@dataclass(frozen=True, slots=True)
class _Join:
    """One engine's last join, and of what it was made."""

    reading: EngineReading
    process: EngineProcess | None
    target: EngineTarget
    world: _World
    looked: Looked
    local: EngineFacts
    joined: EngineReading


class Joiner:
    """Remembers the engines' targets and processes, and which GPUs they were last seen on."""

    def __init__(self) -> None:
        self._targets: Mapping[str, EngineTarget] = {}
        self._looked = Looked()
        self._local = EngineFacts()
        self._world = _World()
        self._joins: dict[str, _Join] = {}

    def expect(self, targets: Iterable[EngineTarget], local: EngineFacts | None = None) -> None:
        """Says which engines there are, and what the settings' ``local_engine`` knows of one of them."""
        if local is not None and local != self._local:
            self._local = local
        self._targets = {target.engine: target for target in targets}
        self._joins = {name: join for name, join in self._joins.items() if name in self._targets}

    def put(self, looked: Looked) -> None:
        """What the newest look at processes has found."""
        if looked != self._looked:
            self._looked = looked

    @property
    def processes(self) -> Mapping[str, EngineProcess]:
        return self._looked.processes

    def join(
        self, readings: Iterable[EngineReading], gpus: Sequence[GpuReading], pods: tuple[GpuPod, ...]
    ) -> tuple[EngineReading, ...]:
        """The readings with facts, GPUs and warnings. Pure but for what is remembered."""
        world = _World(gpus, tuple((gpu.gpu, gpu.uuid, gpu.up, pids_on(gpu)) for gpu in gpus), pods)
        if world != self._world:
            self._world = world
        return tuple(self._joined(reading) for reading in readings)

    def _joined(self, reading: EngineReading) -> EngineReading:
        target = self._targets.get(reading.engine)
        if target is None:
            return reading
        last = self._joins.get(reading.engine)
        now = (reading, target, self._world, self._looked, self._local)
        made_of = (last.reading, last.target, last.world, last.looked, last.local) if last else ()
        if last and all(a is b for a, b in zip(made_of, now, strict=True)):
            return last.joined
        process = self._looked.processes.get(reading.engine)
        joined = self._with_gpus(self._with_facts(reading, target, process), target, process, last)
        self._joins[reading.engine] = _Join(reading, process, *now[1:], joined)
        return joined

    def _with_facts(self, reading: EngineReading, target: EngineTarget, process: EngineProcess | None) -> EngineReading:
        own = reading.facts
        said = EngineFacts() if target.found_by == LoopbackFinder.name else target.facts  # its kind, by its metrics
        by = "discovery" if target.found_by else "config"
        told = {
            name: by if getattr(said, name) == value else "metrics"
            for name, value in own.known().items()
            if name not in own.origins
        }
        facts = replace(own, origins={**told, **own.origins})
        if process is not None:
            facts = facts.completed(process.facts, "command_line")
        models = {model for model in (facts.model, *(each.model for each in reading.replicas)) if model}
        facts, odd = with_local(facts, models, self._local, alone=len(self._targets) == 1)
        joined = reading.with_facts(facts)
        return replace(joined, warnings=(*joined.warnings, *odd)) if odd else joined

    def _with_gpus(
        self, reading: EngineReading, target: EngineTarget, process: EngineProcess | None, last: _Join | None
    ) -> EngineReading:
        silent = self._silent(process, last)
        gpus = target.gpus or self._of_process(process, silent) or self._of_pod(target)
        if not gpus:
            return reading
        named = {gpu.name for gpu in self._world.gpus if gpu.gpu in gpus and gpu.name}
        facts = reading.facts
        if len(named) == 1:
            facts = facts.completed(EngineFacts(gpu_name=named.pop()), "nvml")
        return replace(
            reading,
            facts=facts,
            gpus=gpus,
            gpus_by_replica=self._by_replica(reading, gpus, process, silent),
            warnings=(*reading.warnings, *self._sharers(reading.engine, gpus, process)),
        )

    def _silent(self, process: EngineProcess | None, last: _Join | None) -> Mapping[str, str]:
        """GPUs that were the same run's and tell no process now, lost perhaps: they stay the engine's. Each with its
        replica."""
        if not (process and process.pid and last and last.process and last.process.pid == process.pid):
            return {}
        telling = {gpu for gpu, _, _, pids in self._world.on_gpus if pids is not None}
        was = last.joined.gpus_by_replica
        return {gpu: replica for replica, gpus in was.items() for gpu in gpus if gpu not in telling}

    def _of_process(self, process: EngineProcess | None, silent: Iterable[str]) -> tuple[str, ...]:
        """Those that its processes are on, or were when last they told."""
        seen = gpus_of_process_tree(process.pids, self._world.gpus) if process else ()
        return tuple(sorted({*seen, *silent}, key=_natural))

    def _of_pod(self, target: EngineTarget) -> tuple[str, ...]:
        pod, namespace = target.labels.get("pod", ""), target.labels.get("namespace", "")
        return gpus_of_pod(namespace, pod, self._world.pods, self._world.gpus) if pod and namespace else ()

    def _by_replica(
        self,
        reading: EngineReading,
        gpus: tuple[str, ...],
        process: EngineProcess | None,
        silent: Mapping[str, str],
    ) -> Mapping[str, tuple[str, ...]]:
        names = [replica.replica for replica in reading.replicas]
        if len(names) == 1:
            return {names[0]: gpus}
        facts = reading.facts
        titled = process.pids_by_replica if process else {}
        told = split_by_process(gpus, {name: titled[name] for name in names if name in titled}, self._world.gpus)
        for gpu, replica in silent.items():
            if replica and gpu in gpus:
                told[replica] = tuple(sorted((*told.get(replica, ()), gpu), key=_natural))
        if not told and facts.tensor_parallel_size:
            told = split_evenly(gpus, names, facts.tensor_parallel_size * (facts.pipeline_parallel_size or 1))
        rest = tuple(gpu for gpu in gpus if not any(gpu in own for own in told.values()))
        return {**told, "": rest} if rest else told

    def _sharers(self, engine: str, gpus: Sequence[str], process: EngineProcess | None) -> list[str]:
        """Who else computes on these GPUs; instances of a split card are each their own."""
        if process is None or not process.pids:
            return []
        others = {pid: name for name, each in self._looked.processes.items() if name != engine for pid in each.pids}
        found: list[str] = []
        for gpu in self._world.gpus:
            strangers = (pids_on(gpu) or frozenset()) & self._looked.living - frozenset(process.pids)
            if gpu.gpu not in gpus or gpu.mig_mode or not strangers:
                continue
            who = sorted({f"engine {others[pid]}" if pid in others else f"process {pid}" for pid in strangers})
            found.append(f"GPU {gpu.gpu} is shared with {', '.join(who[:MAX_SHARERS])}")
        return found


def _natural(gpu: str) -> tuple[int, str]:
    """Sort key that puts GPU 2 before GPU 10."""
    return (len(gpu), gpu)
