"""The host under the engines: who wants how much CPU, what a quota or too few cores do about it, what is seen of it."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from random import Random

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.world import Host
from pinchpoint.snapshot import HostReading

_QUOTA_PERIOD_SECONDS = 0.1  # the kernel's default cpu.cfs_period_us
_SLICE_SECONDS = 0.003  # that a runnable thread waits for each other one on its core: EEVDF's base slice
LEAST_CORES = 0.25


class FrontEnd:
    """What a replica's API servers do to a request before it is queued: one after the other on each core."""

    def __init__(self, host: Host) -> None:
        self._seconds = host.admission_seconds
        self._free_at = [0.0] * max(1, host.frontend_cores)
        self._jobs: deque[tuple[float, float]] = deque()  # begin and end, in order of their beginning

    def done_at(self, arrived_at: float, cpu_share: float) -> float:
        begins = max(arrived_at, heapq.heappop(self._free_at))
        ends = begins + self._seconds / cpu_share
        heapq.heappush(self._free_at, ends)
        self._jobs.append((begins, ends))
        return ends

    def busy_seconds(self, since: float, until: float) -> float:
        """In which a request was worked on, summed over the cores. Forgets what has ended by ``until``."""
        busy = 0.0
        for begins, ends in self._jobs:
            if begins >= until:
                break
            busy += max(0.0, min(ends, until) - max(begins, since))
        while self._jobs and self._jobs[0][1] <= until:
            self._jobs.popleft()
        return busy


class SimulatedHost:
    """``sample`` looks at what was wanted since the last look, and sets what the time until the next is like.

    ``cpu_share`` of the time the engines' threads run; when they want no more than there is, that is all of it.
    """

    def __init__(self, host: Host, random: Random) -> None:
        self._host, self._random = host, random
        self.cpu_share = 1.0
        self.reading = HostReading(at=0.0)

    def use(self, host: Host) -> None:
        """Another host from now on."""
        self._host = host

    def sample(self, now: float, engines: Sequence[SimulatedEngine], front_cores: float) -> None:
        """``front_cores``: how many cores the front ends had work for.

        Each engine core and each of its workers spins on a core of its own, whatever the load: vLLM's guide asks for
        one for each. Threads that want more than the quota use it up early in each period, and the whole container
        stands still for the rest of it. On too few cores they take turns, slice by slice.
        """
        host = self._host
        wanted = sum(1 + engine.spec.tensor_parallel_size for engine in engines) + front_cores
        cores = max(LEAST_CORES, host.cpu_count - host.other_cores)
        quota = max(LEAST_CORES, host.quota_cores if host.quota_cores is not None else cores)
        self.cpu_share = min(1.0, quota / wanted, cores / wanted)
        period = _QUOTA_PERIOD_SECONDS if quota < cores else _SLICE_SECONDS / self.cpu_share
        for engine in engines:
            engine.conditions.cpu_share, engine.conditions.cpu_period_seconds = self.cpu_share, period
        self.reading = self._seen(now, wanted, of_quota=wanted / quota, of_cores=wanted / cores)

    def _seen(self, now: float, wanted: float, *, of_quota: float, of_cores: float) -> HostReading:
        """Pressure is the time in which somebody waits: all of it where cores are too few, the stops under a quota.

        Without a quota the kernel counts no periods.
        """
        host, random = self._host, self._random
        used = wanted * self.cpu_share * random.uniform(0.97, 1.03)
        throttled = round(_reached(of_quota) * random.uniform(0.9, 1.0), 3)
        stopped = 1.0 - self.cpu_share if of_quota > of_cores else 0.0
        pressure = max(stopped, _reached(of_cores)) * random.uniform(0.85, 1.0) + random.uniform(0.0, 0.015)
        return HostReading(
            at=now,
            cpu_utilization_ratio=round(min(1.0, (used + host.other_cores) / host.cpu_count), 3),
            cpu_count=float(host.cpu_count),
            cpu_throttled_ratio=throttled if host.quota_cores is not None else None,
            cpu_pressure_ratio=round(min(1.0, pressure), 3),
            engine_cpu_cores=round(used, 2),
            memory_available_bytes=1.6e12,
        )


def _reached(demand_ratio: float) -> float:
    """In what share of the periods a demand that is this share of a limit on average goes beyond it: it wavers."""
    return max(0.0, min(1.0, (demand_ratio - 0.95) / 0.1))
