"""The last reading of every source, and the snapshot that they make together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pinchpoint.config import Settings
from pinchpoint.daemon.joining import Joiner
from pinchpoint.daemon.node import GpuSourceLike
from pinchpoint.snapshot import (
    LAST_PROBES,
    Absence,
    EngineProcess,
    EngineReading,
    EngineTarget,
    HostReading,
    Placement,
    ProbeReading,
    ProbeSkip,
    ProbeSpend,
    ProbeTotals,
    Reason,
    Snapshot,
    SourceReport,
    compared,
)
from pinchpoint.sources.discovery import Found
from pinchpoint.sources.pods import PodDevice, PodsReading, attribute
from pinchpoint.sources.probe.spend.amount import NANO, Spent
from pinchpoint.sources.probe.spend.book import Left
from pinchpoint.sources.process import Looked

HOST_STALE_INTERVALS = 3


class Board:
    """Written by the sources' jobs, read by the tick. All on it is frozen, so a snapshot is a set of references."""

    def __init__(self, settings: Settings, gpus: GpuSourceLike) -> None:
        self.settings = settings
        self.found = Found()  # engines, by those who look for them
        self.targets: tuple[EngineTarget, ...] = ()
        self._gpus = gpus
        self._joiner = Joiner()
        self._processes: Looked | Absence | None = None  # what the newest look at them said
        self._engines: dict[str, EngineReading | Absence] = {}
        self._host: HostReading | None = None
        self._kubelet: PodsReading | Absence | None = None  # what it last said
        self._pods: PodsReading | None = None
        self._probes: dict[str, ProbeReading] = {}
        self._last_probes: dict[str, deque[ProbeReading]] = {}
        self._totals: dict[str, ProbeTotals] = {}
        self._durations: dict[str, float] = {}
        self._succeeded: dict[str, float] = {}

    def expect_engines(self, targets: Iterable[EngineTarget], now: float) -> None:
        """Says which engines there are: new ones are starting, engines that are gone take their readings with them."""
        self.targets = tuple(targets)
        self._joiner.expect(self.targets, self.settings.local_engine.facts())
        names = {target.engine for target in self.targets}
        for gone in self._engines.keys() - names:
            del self._engines[gone]
            self._forget(f"engine/{gone}")
        for name in names - self._engines.keys():
            detail = f"engine {name} has not been scraped yet"
            self._engines[name] = Absence(f"engine/{name}", Reason.STARTING, detail, now)

    def expect_probes(self, targets: Iterable[tuple[str, Placement]]) -> None:
        """Says which probe targets there are; the totals of those that stay where they are go on."""
        wanted = dict(targets)
        for gone in [name for name, totals in self._totals.items() if wanted.get(name) is not totals.placement]:
            del self._totals[gone]
            self._probes.pop(gone, None)
            self._last_probes.pop(gone, None)
            self._forget(f"probe/{gone}")
        for name, placement in wanted.items():
            self._totals.setdefault(name, ProbeTotals(target=name, placement=placement))

    def put_engine(self, name: str, outcome: EngineReading | Absence, duration: float) -> bool:
        """Whether the engine has begun anew since it was last read."""
        if name not in self._engines:  # it was removed while its last scrape was under way
            return False
        last = self._engines[name]
        self._engines[name] = self._dated(outcome, last)
        self._measured(f"engine/{name}", outcome.at, duration, succeeded=isinstance(outcome, EngineReading))
        before = last.epoch if isinstance(last, EngineReading) else None
        return isinstance(outcome, EngineReading) and outcome.epoch != before

    def put_processes(self, outcome: Looked | Absence | None, at: float, duration: float = 0.0) -> None:
        """``None``: nobody wants to know. While a look fails, what the last one found holds."""
        if not isinstance(outcome, Absence):
            self._joiner.put(outcome or Looked())
        if outcome is None or (isinstance(outcome, Looked) and not outcome.living):  # no engine is on this host
            self._processes = None
            self._forget("process")
            return
        self._processes = outcome
        self._measured("process", at + duration, duration, succeeded=isinstance(outcome, Looked))

    def _dated(self, outcome: EngineReading | Absence, last: EngineReading | Absence) -> EngineReading | Absence:
        """An absence that goes on counts from where it began, not from the latest attempt."""
        if isinstance(outcome, EngineReading):
            return outcome
        stale = outcome.at - last.at > self.settings.engines.fresh_for_seconds
        return replace(outcome, at=last.at) if stale or isinstance(last, Absence) else outcome

    def put_probe(self, reading: ProbeReading, duration: float) -> None:
        if reading.target not in self._totals:
            return
        self._probes[reading.target] = reading
        self._last_probes.setdefault(reading.target, deque(maxlen=LAST_PROBES)).append(reading)
        self._totals[reading.target] = self._totals[reading.target].after(reading)
        # A probe's and the host's own time is when they began.
        self._measured(f"probe/{reading.target}", reading.at + duration, duration, succeeded=reading.outcome == "ok")

    def skip_probe(self, target: str, cause: ProbeSkip) -> None:
        if target in self._totals:
            self._totals[target] = self._totals[target].skipped(cause)

    def expect_spending(self, target: str, *, priced: bool) -> None:
        """Says that a target's probes cost money, and whether it is known how much."""
        before = self._totals[target].spend or ProbeSpend()
        money = (before.usd_total or 0.0) if priced else None
        self._totals[target] = replace(self._totals[target], spend=replace(before, usd_total=money))

    def pay_for_probe(self, target: str, spent: Spent) -> None:
        if target in self._totals and (spend := self._totals[target].spend):
            self._totals[target] = replace(self._totals[target], spend=spend.paid(spent.tokens, spent.usd))

    def put_budget(self, target: str, left: Left | None) -> None:
        """``None``: nobody knows."""
        if target in self._totals and (spend := self._totals[target].spend):
            left = left or Left()
            usd = {period: nano_usd / NANO for period, nano_usd in left.nano_usd.items()}
            spend = replace(spend, remaining_tokens=left.tokens, remaining_usd=usd)
            self._totals[target] = replace(self._totals[target], spend=spend)

    def put_liveness(self, target: str, *, up: bool) -> None:
        if target in self._totals:
            self._totals[target] = replace(self._totals[target], endpoint_up=up)

    @property
    def engine_processes(self) -> Mapping[str, EngineProcess]:
        """By engine, of those that the newest look has found on this host."""
        return self._joiner.processes

    def put_host(self, reading: HostReading, duration: float) -> None:
        self._host = reading
        self._measured("host", reading.at + duration, duration, succeeded=True)

    def put_pods(self, outcome: PodsReading | Absence | None, duration: float = 0.0) -> None:
        """``None``: there is no kubelet, or nobody wants to know."""
        self._kubelet = outcome
        if outcome is None:
            self._pods = None
            self._forget("pods")
            return
        if isinstance(outcome, PodsReading):
            self._pods = outcome
        self._measured("pods", outcome.at + duration, duration, succeeded=outcome is self._pods)

    def snapshot(self, now: float, unix_offset: float) -> tuple[Snapshot, tuple[SourceReport, ...]]:
        """What is fresh at ``now``, and how each source fares. Waits for nothing."""
        gpus, gpu_absences = self._gpus.readings(now)
        engines, engine_absences = self._fresh_engines(now)
        devices, pod_absences = self._fresh_pods(now)
        host_limit = self.settings.host.interval_seconds * HOST_STALE_INTERVALS
        host = self._host if self._host and now - self._host.at <= host_limit else None
        pods = attribute(devices, gpus)
        looks = (self._processes,) if isinstance(self._processes, Absence) else ()
        snapshot = Snapshot(
            at=now,
            gpus=gpus,
            engines=self._joiner.join(engines, gpus, pods),
            probes=tuple(self._probes[name] for name in sorted(self._probes)),
            probe_totals=tuple(self._totals[name] for name in sorted(self._totals)),
            comparisons=compared((tuple(self._last_probes[name]) for name in sorted(self._last_probes)), now),
            host=host,
            links=self._gpus.links,
            pods=pods,
            absences=(*gpu_absences, *engine_absences, *pod_absences, *looks, *self.found.absences()),
        )
        up = {f"engine/{reading.engine}" for reading in engines}
        up |= {f"probe/{name}" for name, probe in self._probes.items() if probe.outcome == "ok"}
        up |= {
            name
            for name, there in (("host", host), ("pods", self._kubelet is self._pods), ("process", not looks))
            if there
        }
        names = [f"engine/{name}" for name in self._engines] + [f"probe/{name}" for name in self._totals]
        if self.settings.host.enabled:
            names.append("host")
        if self._kubelet:
            names.append("pods")
        if self._processes:
            names.append("process")
        reports = [self._report(name, up=name in up, unix_offset=unix_offset) for name in sorted(names)]
        gpu = self._gpus.report(now)
        return snapshot, (*((gpu,) if gpu else ()), *reports, *self.found.sources(unix_offset))

    def _fresh_engines(self, now: float) -> tuple[tuple[EngineReading, ...], tuple[Absence, ...]]:
        limit = self.settings.engines.fresh_for_seconds
        readings: list[EngineReading] = []
        absences: list[Absence] = []
        for name in sorted(self._engines):
            last = self._engines[name]
            if isinstance(last, Absence):
                absences.append(last)
            elif now - last.at > limit:
                detail = f"engine {name} was last scraped {now - last.at:.0f} s ago, the limit is {limit:.0f} s"
                absences.append(Absence(f"engine/{name}", Reason.STALE, detail, last.at))
            else:
                readings.append(last)
        return tuple(readings), tuple(absences)

    def _fresh_pods(self, now: float) -> tuple[tuple[PodDevice, ...], tuple[Absence, ...]]:
        """The kubelet's last answer outlives its failures for a while, since pods seldom change."""
        if self._pods and now - self._pods.at <= self.settings.pods.fresh_for_seconds:
            return self._pods.devices, ()
        return (), (self._kubelet,) if isinstance(self._kubelet, Absence) else ()

    def _measured(self, source: str, ended: float, duration: float, *, succeeded: bool) -> None:
        self._durations[source] = duration
        if succeeded:
            self._succeeded[source] = ended

    def _report(self, source: str, *, up: bool, unix_offset: float) -> SourceReport:
        succeeded = self._succeeded.get(source)
        return SourceReport(
            source=source,
            up=up,
            duration_seconds=self._durations.get(source),
            last_success_timestamp_seconds=None if succeeded is None else succeeded + unix_offset,
        )

    def _forget(self, source: str) -> None:
        self._durations.pop(source, None)
        self._succeeded.pop(source, None)
