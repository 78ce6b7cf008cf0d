"""What an operator can choose about evaluating alerts here and telling Alertmanager of them."""

import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from pinchpoint.alerting import RUNBOOKS
from pinchpoint.sources.http.access import AccessSettings
from pinchpoint.sources.http.base_url import BaseUrl

MOST_MEMBERS = 16
MOST_LABELS = 20
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,99}")
_OURS = frozenset({"alertname", "severity", "source", "instance", "job"})
_PLAIN = r"^[^\x00-\x1f\x7f]{0,200}$"


class AlertmanagerTarget(AccessSettings):
    """One member of an Alertmanager cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: BaseUrl = Field(
        description="Its base URL with the path prefix it may have, like http://alertmanager-0:9093. Name each member "
        "of a cluster by itself: they share silences, not alerts, and a balancer would tell one of them."
    )
    timeout_seconds: float = Field(
        default=10.0,
        gt=0,
        le=60,
        description="Seconds for one request, connecting included. Default 10, as Prometheus allows.",
    )

    @property
    def alerts_url(self) -> str:
        return f"{self.url}/api/v2/alerts"


class AlertmanagerSettings(BaseModel):
    """Alerts without a Prometheus that evaluates the rules. Off unless there is a target.

    Where a Prometheus does evaluate them, leave this off: two pages for one cause help nobody.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    targets: tuple[AlertmanagerTarget, ...] = Field(
        default=(),
        max_length=MOST_MEMBERS,
        description="Every member of the Alertmanager cluster. Default none: alerts are not evaluated here, because a "
        "Prometheus with the rule file does it better and outlives this node.",
    )
    evaluation_interval_seconds: float = Field(
        default=15.0,
        ge=1,
        le=60,  # a rate over a minute needs two samples
        description="Seconds between two evaluations. Default 15: four in the shortest wait of a page, one minute.",
    )
    resend_seconds: float = Field(
        default=60.0,
        ge=1,
        le=900,
        description="Seconds after which a firing alert is told again; it is good for four times as long. Default 60, "
        "as in Prometheus: if this node dies, Alertmanager resolves its alerts after 4 minutes.",
    )
    instance: str = Field(
        default="",
        pattern=_PLAIN,
        description="The label `instance` of every alert. Default: the host's name and the port of the page.",
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        max_length=MOST_LABELS,
        description="Further labels of every alert, like {cluster: prod}. Default: none but source=pinchpoint, by "
        "which routes and inhibitions know these from a Prometheus' alerts.",
    )
    external_url: BaseUrl | None = Field(
        default=None,
        description="Where people reach the status page: each alert links to it. Default: this host's name and port.",
    )
    grafana_url: BaseUrl | None = Field(
        default=None,
        description="The Grafana that has the dashboards, put before each alert's link. Default: a path alone.",
    )
    runbook_url: BaseUrl = Field(
        default=RUNBOOKS, description="The folder in which the runbooks lie. Default: that of the project."
    )

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        for name, value in labels.items():
            if not _LABEL_NAME.fullmatch(name) or name.startswith("__"):
                raise ValueError(f"{name[:100]!r} is no label's name; use letters, digits and underscores")
            if name in _OURS:
                raise ValueError(f"label {name} is set by pinchpoint; choose another name")
            if not re.fullmatch(_PLAIN, value):
                raise ValueError(
                    f"label {name} has a value of more than 200 or with unprintable characters; correct it"
                )
        return labels

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        urls = [target.url for target in self.targets]
        if twice := next((url for url in urls if urls.count(url) > 1), None):
            raise ValueError(f"{twice} is given twice; name each member once")
        return self

    @property
    def enabled(self) -> bool:
        return bool(self.targets)

    @property
    def pace(self) -> tuple[float, float]:
        """How often things happen, whoever is told."""
        return self.evaluation_interval_seconds, self.resend_seconds
