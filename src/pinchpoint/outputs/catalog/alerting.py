"""The alerting family: what the daemon's own evaluation of the alerts says, and whether Alertmanager hears of it.

Absent where alerts are evaluated by a Prometheus, as they should be where there is one.
"""

from collections import Counter
from collections.abc import Iterable

from pinchpoint.outputs.catalog.metric import Kind, Metric, Sample, counter, gauge
from pinchpoint.outputs.scene import Scene
from pinchpoint.snapshot import AlertingReport, AlertmanagerReport

MEMBER = ("alertmanager",)
# Labels of alerts by which one is told from another; what else they bear is on the status page.
SUBJECT = ("engine", "replica", "gpu", "target")


def _alerting(scene: Scene) -> Iterable[AlertingReport]:
    found = scene.self_report.alerting
    return () if found is None else (found,)


def _members(scene: Scene) -> Iterable[AlertmanagerReport]:
    return (member for each in _alerting(scene) for member in each.alertmanagers)


def _firing(scene: Scene) -> Iterable[Sample]:
    for each in _alerting(scene):
        yield (), sum(alert.state == "firing" for alert in each.active)


def _states(scene: Scene) -> Iterable[Sample]:
    count = Counter(
        (alert.alert, alert.severity, alert.state, *(alert.labels.get(name, "") for name in SUBJECT))
        for each in _alerting(scene)
        for alert in each.active
    )
    return count.items()


def _plain(name: str, field: str, kind: Kind, text: str) -> Metric:
    """A number of the evaluation: the report's field of that name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((), getattr(each, field)) for each in _alerting(scene))

    return Metric(name=name, kind=kind, help=text, labels=(), read=read)


def _member(field: str, text: str, kind: Kind = Kind.GAUGE) -> Metric:
    """A number of each member: the report's field of that name."""

    def read(scene: Scene) -> Iterable[Sample]:
        return (((member.alertmanager,), getattr(member, field)) for member in _members(scene))

    return Metric(name=f"alertmanager_{field}", kind=kind, help=text, labels=MEMBER, read=read)


def _failures(scene: Scene) -> Iterable[Sample]:
    for member in _members(scene):
        yield from (
            ((member.alertmanager, reason), count) for reason, count in member.notifications_failed_total.items()
        )


ALERTING_METRICS = (
    gauge("alerts_firing", (), _firing, "How many alerts fire, of those that pinchpoint evaluates itself."),
    gauge(
        "alert_state",
        ("alertname", "severity", "alertstate", *SUBJECT),
        _states,
        "How many alerts of this name and about this are pending or firing, as pinchpoint evaluates them itself.",
    ),
    _plain("alert_evaluation_seconds", "evaluation_seconds", Kind.GAUGE, "How long the last evaluation took."),
    _plain(
        "alert_evaluation_failures_total",
        "evaluation_failures_total",
        Kind.COUNTER,
        "Expressions of alerts whose evaluation failed; their alerts stayed as they were.",
    ),
    _plain(
        "alert_last_evaluation_timestamp_seconds",
        "last_evaluation_timestamp_seconds",
        Kind.GAUGE,
        "When the alerts were last evaluated, in Unix time.",
    ),
    _plain(
        "alert_evaluation_refused",
        "refused",
        Kind.GAUGE,
        "Series and alerts that did not fit into what the last evaluation may remember.",
    ),
    _member("up", "Whether the member took the last notification; absent while there was none."),
    _member("notifications_total", "Notifications sent to the member, each of up to 256 alerts.", Kind.COUNTER),
    counter(
        "alertmanager_notifications_failed_total",
        (*MEMBER, "reason"),
        _failures,
        "Notifications that the member did not take, and why.",
    ),
    _member("last_success_timestamp_seconds", "When the member last took a notification, in Unix time."),
    _member("queue_length", "Alerts that the member is yet to be told of, each once, as it is now."),
)
