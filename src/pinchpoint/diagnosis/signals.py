"""Everything a rule may look at, measured once per verdict."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from itertools import pairwise, takewhile
from math import isfinite
from statistics import median
from typing import Any, TypeVar

from pinchpoint.diagnosis.compared import Compared, compared_of
from pinchpoint.diagnosis.devices import Devices, devices_of
from pinchpoint.diagnosis.growth import Growth, growth_of
from pinchpoint.diagnosis.host import HostLoad, host_of
from pinchpoint.diagnosis.identity import once_each
from pinchpoint.diagnosis.latency import Latency, latency_of
from pinchpoint.diagnosis.links import Links, links_of
from pinchpoint.diagnosis.load import Load, load_of
from pinchpoint.diagnosis.plateau import inferred_max_num_seqs
from pinchpoint.diagnosis.probed import Probed, is_unmeasured, probed_of
from pinchpoint.diagnosis.rates import known
from pinchpoint.diagnosis.roofline import Machine, Roofline, flops_utilization, machine_of, roofline_of
from pinchpoint.diagnosis.spread import Spread, spread_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Objective
from pinchpoint.diagnosis.way import Way, ended, way_of
from pinchpoint.snapshot import Absence, EngineFacts, EngineReading, Quantile, Reason, Slo, Snapshot, Window

R = TypeVar("R")
Scrapes = tuple[EngineReading, ...]
_NUMBERS = (float, int)  # no bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """One engine over the window, as numbers; every one is ``None`` where nothing tells it.

    ``age_seconds`` is the age of the newest scrape, ``absence`` why there is none. Only scrapes of the newest epoch
    count: what was before a restart says nothing about now.
    """

    age_seconds: float | None = field(default=None, compare=False)  # grows with every tick
    absence: Absence | None = None
    awake: bool | None = None
    running_lag_seconds: float = 0.0  # how long the count of running requests may outlast them
    not_exposed: frozenset[str] = frozenset()  # fields that this kind of engine has no metric for
    doubtful: bool = False  # the counts of this setup are known to contradict each other
    valueless: bool = False  # metrics are declared and have no value yet
    own_probes: float | None = None  # synthetic requests of ours that ended within the window; None: none are sent
    own_probe_targets: float | None = None  # ways in which they are sent: each may have one more in flight
    model_flops_utilization_ratio: float | None = None  # of the cards' dense peak, from public shapes and peaks
    inferred_max_num_seqs: float | None = None  # a plateau in sight, where nobody told the limit
    facts: EngineFacts = field(default_factory=EngineFacts)
    slo: Slo = field(default_factory=Slo)
    load: Load = field(default_factory=Load)
    latency: Latency = field(default_factory=Latency)
    devices: Devices = field(default_factory=Devices)
    roofline: Roofline = field(default_factory=Roofline)
    host: HostLoad = field(default_factory=HostLoad)
    links: Links = field(default_factory=Links)
    spread: Spread = field(default_factory=Spread)
    growth: Growth = field(default_factory=Growth)
    probed: Probed | None = None  # only of an engine that says nothing itself
    compared: Compared | None = None  # None: no probe of ours that leads to it is held against a hosted one
    way: Way | None = None  # None: no local probe of ours leads to it
    # What follows of these very signals: every rule asks for the same.
    ttft: Objective = field(init=False, compare=False, repr=False)
    inter_token: Objective = field(init=False, compare=False, repr=False)
    found: dict[object, tuple[Thresholds, Any]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ttft", _ttft(self.latency, self.slo))
        object.__setattr__(self, "inter_token", _inter_token(self.latency, self.slo))

    def numbers(self) -> dict[str, float]:
        """Every known signal by name, for the export of ``diagnosis_signal``."""
        of_node = (self, self.devices, self.host, self.links)
        of_scrapes = _numbers_of_scrapes(self.load, self.latency, self.roofline, self.spread)
        return _numbers(*of_node) | of_scrapes | _numbers(self.growth, self.probed, self.compared, self.way)


def _ttft(latency: Latency, slo: Slo) -> Objective:
    return Objective(
        slo_seconds=slo.ttft_seconds,
        judged_seconds=latency.ttft_judged_seconds,
        judged_by=latency.ttft_judged_by,
        p50=latency.ttft_p50_seconds,
        p95=latency.ttft_p95_seconds,
    )


def _inter_token(latency: Latency, slo: Slo) -> Objective:
    """A mean is judged, of all tokens or of each request: that is what TPOT is, and how a stream is read."""
    return Objective(
        slo_seconds=slo.tpot_seconds,
        judged_seconds=known(latency.tpot_judged_seconds) or latency.inter_token_mean_seconds,
        judged_by=latency.tpot_judged_by,
        p50=latency.inter_token_p50_seconds,
        p95=latency.inter_token_p95_seconds,
    )


def found_once(function: Callable[[Signals, Thresholds], R]) -> Callable[[Signals, Thresholds], R]:
    """Decorates what many rules ask of the same signals."""

    @wraps(function)
    def found(signals: Signals, thresholds: Thresholds) -> R:
        before = signals.found.get(function)
        if before is None or before[0] is not thresholds:
            before = signals.found[function] = (thresholds, function(signals, thresholds))
        answer: R = before[1]
        return answer

    return found


def _numbers(*parts: object) -> dict[str, float]:
    """``__slots__`` are the names of the fields; to ask for these takes far longer."""
    found: dict[str, float] = {}
    for part in parts:
        for name in getattr(part, "__slots__", ()):
            value: Any = getattr(part, name)
            if type(value) is Quantile:
                value = value.value
            if type(value) in _NUMBERS and isfinite(value):
                found[name] = float(value)
    return found


_numbers_of_scrapes = once_each(256)(_numbers)  # the same parts for as long as no scrape is new


@dataclass(frozen=True, slots=True)
class Measured:
    """What is a function of the scrapes and of the cards' name alone."""

    epoch: tuple[EngineReading, ...]
    readings: tuple[EngineReading, ...]
    gpu_name: str | None
    facts: EngineFacts
    machine: Machine | None
    load: Load
    latency: Latency
    roofline: Roofline
    spread: Spread
    model_flops_utilization_ratio: float | None
    inferred_max_num_seqs: float | None
    unmeasured: bool
    not_exposed: frozenset[str]


Measure = Callable[[str, Scrapes, Scrapes, Thresholds, str | None], Measured]


def measured(
    _engine: str, epoch: Scrapes, readings: Scrapes, thresholds: Thresholds, gpu_name: str | None = None
) -> Measured:
    """Measures ``readings``, the newest scrapes of ``epoch``: all that is remembered since the last restart.

    ``gpu_name`` is what the engine's cards call themselves, for where no fact says it.
    """
    load, latency = load_of(readings, thresholds), latency_of(readings, thresholds)
    facts = readings[-1].facts
    if gpu_name is not None:
        facts = facts.completed(EngineFacts(gpu_name=gpu_name), "nvml")
    machine = machine_of(facts)
    return Measured(
        epoch=epoch,
        readings=readings,
        gpu_name=gpu_name,
        facts=facts,
        machine=machine,
        load=load,
        latency=latency,
        roofline=roofline_of(machine, readings, load, latency, thresholds),
        spread=spread_of(readings, thresholds),
        model_flops_utilization_ratio=flops_utilization(machine, readings[-1], load),
        # From the whole epoch: a limit does not change, and a longer look contradicts sooner.
        inferred_max_num_seqs=None if facts.max_num_seqs else inferred_max_num_seqs(epoch, thresholds),
        unmeasured=is_unmeasured(readings),
        not_exposed=frozenset(name for name, why in readings[-1].unavailable.items() if why is Reason.NOT_EXPOSED),
    )


def signals_of(window: Window, engine: str, now: float, thresholds: Thresholds, measure: Measure = measured) -> Signals:
    """Measures one engine. An engine that is absent or stale has no load and no latency, but its GPUs are looked at.

    ``measure`` may remember what it said of the same scrapes.
    """
    latest = window.latest
    if latest is None:
        return Signals()
    every = window.engine(engine)
    declared = every[-1].gpus if every else ()
    owner = bool(declared) or latest.engine_names() == (engine,)
    within = _newest(window, thresholds)
    recent = within if owner else ()
    devices = devices_of(recent, engine, declared)
    current = latest.engine(engine)
    if current is None or now - current.at > thresholds.stale_seconds:
        age = now - every[-1].at if every else None
        return Signals(age_seconds=age, absence=latest.absence(f"engine/{engine}"), devices=devices)
    epoch = _newest_epoch(every)
    readings = _newest_scrapes(epoch, every, thresholds)
    gpu_name = _gpu_name(latest, declared) if owner else None
    found = measure(engine, epoch, readings, thresholds, gpu_name)
    probes = window.probes_of(engine)
    return Signals(
        age_seconds=now - current.at,
        awake=_awake(current),
        running_lag_seconds=current.running_lag_seconds,
        not_exposed=found.not_exposed,
        doubtful=current.doubtful,
        valueless=current.unavailable.get("requests_running") is Reason.STARTING,
        own_probes=float(sum(ended(probe) >= readings[0].at for probe in probes)) if probes else None,
        own_probe_targets=float(len({probe.target for probe in probes})) if probes else None,
        model_flops_utilization_ratio=found.model_flops_utilization_ratio,
        inferred_max_num_seqs=found.inferred_max_num_seqs,
        facts=found.facts,
        slo=current.slo,
        load=found.load,
        latency=found.latency,
        roofline=found.roofline,
        devices=devices,
        host=host_of(within, current, found.load, found.latency, found.roofline, devices),
        links=links_of(recent, current, found.machine, found.load, found.latency, found.roofline, devices, thresholds),
        spread=found.spread,
        growth=growth_of(window, current, found.epoch[0].at, thresholds) if owner else Growth(),
        probed=probed_of(window, engine, current.gpus, thresholds) if found.unmeasured else None,
        compared=compared_of(window, engine),
        way=way_of(window, engine, probes, found.epoch, current.slo),
    )


@once_each(4)
def _newest(window: Window, thresholds: Thresholds) -> tuple[Snapshot, ...]:
    """The ticks that a verdict looks at: the same for all engines, so that what is found of these is found once."""
    return window.last(thresholds.window_seconds).snapshots


@once_each(256)  # the same scrapes for as long as none is new
def _newest_epoch(every: Scrapes) -> Scrapes:
    """The scrapes back to the newest restart."""
    return tuple(takewhile(lambda reading: reading.epoch == every[-1].epoch, reversed(every)))[::-1]


def _newest_scrapes(epoch: Scrapes, every: Scrapes, thresholds: Thresholds) -> Scrapes:
    """The scrapes of the ``epoch`` within a window that ends with the newest, or the last few when they come rarely.

    Not with the tick: from one scrape to the next nothing is measured anew, and no verdict moves.
    What was before a gap says nothing of now: the few reach over none that is longer than what makes a scrape stale,
    unless scrapes come as rarely as that in ``every`` epoch.
    """
    chosen: list[EngineReading] = []
    oldest = epoch[-1].at - thresholds.window_seconds
    for reading in reversed(epoch):
        few = len(chosen) < thresholds.min_scrapes
        if reading.at < oldest and not (few and not _is_gap(reading, chosen, every, thresholds.stale_seconds)):
            break
        chosen.append(reading)
    return tuple(reversed(chosen))


def _is_gap(
    before: EngineReading, after: Sequence[EngineReading], every: Sequence[EngineReading], longest: float
) -> bool:
    if not after or after[-1].at - before.at <= longest:
        return False
    return after[-1].at - before.at > 3 * median(newer.at - older.at for older, newer in pairwise(every))


def _awake(reading: EngineReading) -> bool | None:
    told = [replica.awake for replica in reading.replicas if replica.awake is not None]
    return any(told) if told else None


def _gpu_name(latest: Snapshot, declared: tuple[str, ...]) -> str | None:
    """Of cards of two kinds nothing is said: the slower one paces an engine on both, and may not be the engine's."""
    names = {gpu.name for gpu in latest.gpus if gpu.name and (not declared or gpu.gpu in declared)}
    return names.pop() if len(names) == 1 else None
