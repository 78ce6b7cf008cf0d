"""What is said of alerts: to Alertmanager, and on the status page. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pinchpoint.alerting import Alert, Severity
from pinchpoint.alerting.labels import Labels
from pinchpoint.alerting.state import Instance, State, States
from pinchpoint.alerting.template import TemplateError, render
from pinchpoint.outputs.alertmanager import Notice
from pinchpoint.snapshot import AlertReport

SOURCE = "pinchpoint"  # the label that tells these from the same alerts of a Prometheus


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """``labels`` are added to every alert that has none of that name."""

    alerts: Mapping[str, Alert]
    labels: Mapping[str, str]
    grafana_url: str
    runbook_url: str

    def notices(self, states: States) -> list[Notice]:
        """Everything that fires, or has fired lately."""
        return [
            Notice(
                labels={**self.labels, **dict(labels), "alertname": name, "severity": alert.severity, "source": SOURCE},
                annotations=self._annotations(alert, labels, each.value),
                starts_at=each.fired_at,
                resolved_at=each.resolved_at,
            )
            for name, alert, labels, each in self._known(states)
            if each.fired_at is not None
        ]

    def reports(self, states: States) -> tuple[AlertReport, ...]:
        """Everything that fires or is about to, the most urgent first, of these the oldest."""
        severities = list(Severity)
        found = [
            AlertReport(
                alert=name,
                severity=alert.severity,
                state=each.state,
                labels=dict(labels),
                value=each.value,
                since_unix_seconds=each.active_at if each.fired_at is None else each.fired_at,
                summary=alert.summary,
                description=_text(alert.description, labels, each.value),
            )
            for name, alert, labels, each in self._known(states)
            if each.state is not State.RESOLVED
        ]
        order = {severity.value: place for place, severity in enumerate(severities)}
        return tuple(
            sorted(found, key=lambda a: (a.state != State.FIRING, order[a.severity], a.since_unix_seconds, a.alert))
        )

    def _known(self, states: States) -> Iterator[tuple[str, Alert, Labels, Instance]]:
        return ((name, self.alerts[name], labels, each) for name, labels, each in states.each())

    def _annotations(self, alert: Alert, labels: Labels, value: float) -> dict[str, str]:
        texts = {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": f"{self.runbook_url.rstrip('/')}/{alert.runbook}",
            "dashboard_url": self.grafana_url.rstrip("/") + alert.dashboard,
        }
        return {name: _text(text, labels, value) for name, text in texts.items()}


def _text(template: str, labels: Labels, value: float) -> str:
    """As rendered; as written where that fails, for a page with a poor text is better than none."""
    try:
        return render(template, labels, value)
    except TemplateError:
        return template
