"""The host under the engines: who wants how much CPU, what a quota or too few cores do about it, what is seen of it."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from random import Random

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.engine.work import Work
from pinchpoint.simulator.world import Host
from pinchpoint.snapshot import HostReading


class FrontEnd:
    """What a replica's API servers do to a request before it is queued: one after the other on each core."""

    def __init__(self, host: Host) -> None:
        self._seconds = host.admission_seconds
        self._free_at = [0.0] * max(1, host.frontend_cores)
        self.busy_seconds = 0.0

    def done_at(self, arrived_at: float, slowdown: float) -> float:
        took = self._seconds * slowdown
        done = max(arrived_at, heapq.heappop(self._free_at)) + took
        heapq.heappush(self._free_at, done)
        self.busy_seconds += took
        return done


class SimulatedHost:
    """``sample`` looks at what was done since the last look, and sets what the next second is like."""

    def __init__(self, host: Host, random: Random) -> None:
        self._host, self._random = host, random
        self.slowdown = 1.0  # of every thread of the engines
        self.reading = HostReading(at=0.0)

    def use(self, host: Host) -> None:
        """Another host from now on."""
        self._host = host

    def sample(
        self, now: float, seconds: float, engines: Sequence[SimulatedEngine], done: Sequence[Work], front: float
    ) -> None:
        """``done`` is each engine's work in the last ``seconds``, ``front`` the CPU seconds of their front ends.

        A core for each engine core and each of its workers is spun on, whatever the load. Under a quota the whole
        container stands still for the rest of each period, so everything takes longer by demand over quota; with too
        few cores, by demand over cores.
        """
        host = self._host
        spinning = sum(1 + engine.spec.tensor_parallel_size for engine in engines)
        wanted = spinning + front / seconds / self.slowdown
        allowed = host.cpu_count - host.other_cores
        if host.quota_cores is not None:
            allowed = min(allowed, host.quota_cores)
        allowed = max(0.25, allowed)
        over = wanted / allowed
        self.slowdown = max(1.0, over)
        for engine, work in zip(engines, done, strict=True):
            engine.conditions.host_slowdown = _host_slowdown(self.slowdown, work, seconds)
        self.reading = self._seen(now, wanted, over)

    def _seen(self, now: float, wanted: float, over: float) -> HostReading:
        host, random = self._host, self._random
        used = min(wanted, wanted / self.slowdown) * random.uniform(0.97, 1.03)
        by_quota = host.quota_cores is not None and host.quota_cores <= host.cpu_count - host.other_cores
        throttled = max(0.0, min(1.0, 3.0 * (over - 0.95))) if by_quota else 0.0
        crowded = max(0.0, 1.0 - 1.0 / over) if not by_quota else 0.3 * throttled
        return HostReading(
            at=now,
            cpu_utilization_ratio=round(min(1.0, (used + host.other_cores) / host.cpu_count), 3),
            cpu_count=float(host.cpu_count),
            cpu_throttled_ratio=round(throttled * random.uniform(0.9, 1.0), 3),
            cpu_pressure_ratio=round(min(1.0, crowded * random.uniform(0.8, 1.1) + random.uniform(0.0, 0.015)), 3),
            engine_cpu_cores=round(used, 2),
            memory_available_bytes=1.6e12,
        )


def _host_slowdown(slowdown: float, work: Work, seconds: float) -> float:
    """What the host's part of a step is multiplied by, so that the whole step takes ``slowdown`` times as long.

    A thread that is stopped can't launch the next step: the GPU's time counts too, as far as the engine was busy.
    """
    if slowdown <= 1.0 or work.host_cpu_seconds <= 0.0:
        return slowdown
    busy = min(seconds, work.gpu_seconds + work.host_cpu_seconds)
    return slowdown + (slowdown - 1.0) * max(0.0, busy - work.host_cpu_seconds) / work.host_cpu_seconds
