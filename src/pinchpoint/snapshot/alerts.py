"""What the daemon's own evaluation of the alerts says at one tick, and how those who are told of it fare."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pinchpoint.snapshot.absence import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertReport:
    """One alert that waits for its time (``pending``) or fires."""

    alert: str
    severity: str
    state: str
    labels: Mapping[str, str]
    value: float
    since_unix_seconds: float  # pending or firing
    summary: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertmanagerReport:
    """How one Alertmanager fares since the daemon started. A notification is one POST, of up to 256 alerts."""

    alertmanager: str  # its URL
    up: bool | None = None  # None: not told anything yet
    notifications_total: int = 0
    notifications_failed_total: Mapping[Reason, int] = field(default_factory=dict)
    last_success_timestamp_seconds: float | None = None  # Unix time
    queue_length: int = 0  # alerts whose newest state it has not heard yet


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingReport:
    """Where alerts are evaluated here."""

    active: tuple[AlertReport, ...] = ()
    alertmanagers: tuple[AlertmanagerReport, ...] = ()
    evaluation_seconds: float | None = None  # of the last one
    evaluation_failures_total: int = 0  # of one alert's expression
    last_evaluation_timestamp_seconds: float | None = None  # Unix time
    refused: int | None = None  # series and alerts that no longer fit into memory, at the last evaluation
