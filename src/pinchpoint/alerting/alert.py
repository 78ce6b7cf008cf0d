"""What an alert is."""

from dataclasses import dataclass
from enum import StrEnum

RUNBOOKS = "https://github.com/pinchpoint/pinchpoint/blob/main/alerts/runbooks"


class Severity(StrEnum):
    """What a human does: get up (critical), work on it today (warning), nothing (info), or miss it (none: watchdog)."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"
    NONE = "none"


class Dashboard(StrEnum):
    """The uid of the dashboard on which an alert's cause is looked for."""

    FLEET = "pinchpoint-fleet"
    ENGINE = "pinchpoint-engine"
    GPU = "pinchpoint-gpu"
    CAPACITY = "pinchpoint-capacity"
    SELF = "pinchpoint-self"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One Prometheus alert.

    ``expr`` is PromQL over names of the metric table. ``for_seconds``: how long it must hold before the alert fires;
    ``keep_firing_for_seconds``: how long it must be over before the alert ends. ``summary`` is one static sentence;
    ``description`` is a template with the value and the remedy; ``why`` are the reasons of threshold and times, for the
    documentation. ``panel_variables`` are labels that the dashboard link carries over. The value is never a label: it
    would make a new alert at each evaluation.
    """

    name: str
    expr: str
    severity: Severity
    summary: str
    description: str
    why: str = ""
    for_seconds: int = 0
    keep_firing_for_seconds: int = 0
    dashboard_uid: Dashboard = Dashboard.FLEET
    panel_variables: tuple[str, ...] = ()
    needs_outside_view: bool = False  # only somebody else can see it: pinchpoint does not evaluate it itself

    @property
    def runbook(self) -> str:
        """The file, in the folder of runbooks, in which it is written what to do."""
        return f"{self.name}.md"

    @property
    def dashboard(self) -> str:
        """The dashboard's path on a Grafana, opened at what the alert is about."""
        query = "&".join(f"var-{label}={{{{ $labels.{label} }}}}" for label in self.panel_variables)
        return f"/d/{self.dashboard_uid}" + (f"?{query}" if query else "")
