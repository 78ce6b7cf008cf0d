"""What is written for people from the catalogue: the table of alerts, and the beginning of a runbook."""

from collections.abc import Iterable, Mapping

from pinchpoint.alerting.alert import Alert
from pinchpoint.alerting.catalogue import TOPICS


def alerts_table(topics: Mapping[str, Iterable[Alert]] = TOPICS, runbooks: str = "../alerts/runbooks") -> str:
    """A Markdown table a topic. ``runbooks`` is the folder of runbooks, seen from where the table stands."""
    return "\n".join(_table(topic, alerts, runbooks) for topic, alerts in topics.items())


def _table(topic: str, alerts: Iterable[Alert], runbooks: str) -> str:
    title = topic.removeprefix("pinchpoint-").replace("-", " ")
    head = f"### {title}\n\n| alert | severity | what | for, keeps | why this threshold |\n|---|---|---|---|---|\n"
    return head + "".join(
        f"| [{alert.name}]({runbooks}/{alert.runbook}) | {alert.severity} | {alert.summary} "
        f"| {_time(alert.for_seconds)}, {_time(alert.keep_firing_for_seconds)} | {alert.why} |\n"
        for alert in alerts
    )


def _time(seconds: int) -> str:
    return f"{seconds // 60} m" if seconds and seconds % 60 == 0 else f"{seconds} s"


def runbook_skeleton(alert: Alert) -> str:
    """The parts of a runbook with what the catalogue knows; the rest is for whoever adds the alert."""
    query = "\n   ".join(alert.expr.splitlines())
    return (
        f"# {alert.name}\n\n**Meaning.** {alert.summary} {alert.why}\n\n**Impact.** TODO: who feels what, and who "
        f"does not.\n\n## Check\n1. TODO: what does this show, and what would say that it is no trouble?\n"
        f"   ```promql\n   {query}\n   ```\n\n## Mend\n- TODO: levers, the cheapest first.\n\n"
        "## Don't\n- TODO: what looks like a remedy and is none.\n"
    )
