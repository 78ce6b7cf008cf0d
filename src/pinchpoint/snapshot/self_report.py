"""What the daemon knows about itself at one tick."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.absence import Reason
from pinchpoint.snapshot.alerts import AlertingReport
from pinchpoint.snapshot.nvml_calls import NvmlCalls


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """How one source fares: the runner's measure around each of its attempts."""

    source: str  # gpu, host, engine/NAME, probe/NAME, discovery/NAME
    up: bool
    duration_seconds: float | None = None  # of the last attempt
    last_success_timestamp_seconds: float | None = None  # Unix time


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReport:
    """How one scheduled job fares since the daemon started."""

    job: str
    runs_total: int = 0
    failures_total: int = 0
    missed_total: int = 0
    skipped_total: int = 0  # the previous run was still going
    last_duration_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveryReport:
    """What one finder of engines has found, whether it is well or its last good list is in force."""

    discovery: str  # loopback, file/NAME, http/NAME
    targets: int | None = None  # None: no list yet
    refused: int | None = None  # items of the list that are no engine
    failures_total: Mapping[Reason, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfReport:
    """The daemon on itself. ``event_loop_lag_seconds`` is the largest lag since the previous tick."""

    version: str
    python_version: str
    simulated: bool = False
    tick_seconds: float = 1.0
    started_timestamp_seconds: float = 0.0
    event_loop_lag_seconds: float | None = None
    render_seconds: float | None = None
    config_last_reload_successful: bool = True
    config_last_reload_success_timestamp_seconds: float | None = None
    sources: tuple[SourceReport, ...] = ()
    jobs: tuple[JobReport, ...] = ()
    discoveries: tuple[DiscoveryReport, ...] = ()
    shard: int | None = None  # which of ``shards`` parts of the engines is watched here, from 0; None: all of them
    shards: int | None = None
    gpus_expected: int | None = None
    gpus_visible: int | None = None
    nvml: NvmlCalls = field(default_factory=NvmlCalls)
    alerting: AlertingReport | None = None  # None: alerts are not evaluated here
