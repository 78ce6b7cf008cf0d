"""The alerts that pinchpoint evaluates itself, and whether Alertmanager hears of them, as a panel."""

from collections.abc import Sequence

from pinchpoint.outputs.web import units
from pinchpoint.outputs.web.drawings import icon
from pinchpoint.outputs.web.markup import Child, Html, el, name
from pinchpoint.outputs.web.words import Severity
from pinchpoint.snapshot import AlertingReport, AlertmanagerReport, AlertReport

MOST_SHOWN = 20
_LOOKS = {"critical": Severity.CRITICAL, "warning": Severity.PINCHED}
_SAID_ELSEWHERE = ("job", "instance")  # the same for all of this page


def panel(alerting: AlertingReport | None, unix_seconds: float) -> Html | None:
    """What fires and what is about to; nothing where alerts are a Prometheus' to evaluate."""
    if alerting is None:
        return None
    shown = [alert for alert in alerting.active if alert.severity != "none"]  # the watchdog fires when all is well
    rows: list[Child] = [_member(member) for member in alerting.alertmanagers if member.up is False]
    rows += [_alert(alert, unix_seconds) for alert in shown[:MOST_SHOWN]]
    if len(shown) > MOST_SHOWN:
        rows.append(el("li", el("p", f"and {len(shown) - MOST_SHOWN} more")))
    if not rows:
        return None
    return el("section", el("h2", _title(shown)), el("ul", rows), class_="panel missing", id="alerts")


def _title(alerts: Sequence[AlertReport]) -> str:
    firing = sum(alert.state == "firing" for alert in alerts)
    pending = len(alerts) - firing
    parts = [f"{firing} firing" if firing else "", f"{pending} pending" if pending else ""]
    return "Alerts" + (": " + ", ".join(filter(None, parts)) if alerts else "")


def _alert(alert: AlertReport, unix_seconds: float) -> Html:
    firing = alert.state == "firing"
    looks = _LOOKS.get(alert.severity, Severity.UNSURE) if firing else Severity.QUIET
    about = ", ".join(value for label, value in sorted(alert.labels.items()) if label not in _SAID_ELSEWHERE)
    age = units.duration(unix_seconds - alert.since_unix_seconds)
    return el(
        "li",
        el("p", icon(looks), name(alert.alert), el("b", about), el("small", f"{alert.state} for {age}")),
        el("p", alert.description, class_="hint") if firing else None,
    )


def _member(member: AlertmanagerReport) -> Html:
    waiting = f"{member.queue_length} alerts wait to be told; the log says why"
    return el(
        "li",
        el("p", icon(Severity.CRITICAL), name(member.alertmanager), el("b", "is not reached")),
        el("p", waiting, class_="hint"),
    )
