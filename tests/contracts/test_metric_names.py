"""What alerts ask for must exist: the metric table is the one place that names a metric."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from pinchpoint.alerting import ALERTS
from pinchpoint.diagnosis.compared import Compared
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.catalog import CATALOG
from pinchpoint.snapshot import ThrottleReason
from tests.contracts import promql

RUNBOOKS = Path("alerts/runbooks")
LABELS = {name: set(metric.labels) for metric in CATALOG for name in metric.series_names}
# Made by Prometheus itself, or by the process.
FOREIGN = {"up", "ALERTS", "process_start_time_seconds", "process_cpu_seconds_total"}
TARGET_LABELS = {"job", "instance", "le", "alertname", "alertstate"}


def selectors(expr: str) -> list[tuple[str, set[str]]]:
    """(metric, labels in its matchers) of each selector in ``expr``; raises ``ValueError`` when it does not parse."""
    return [(each.name, {label for label, _, _ in each.matchers}) for each in promql.selectors(expr)]


def asked() -> list[tuple[str, str]]:
    every = [(alert.name, alert.expr) for alert in ALERTS]
    for page in sorted(RUNBOOKS.glob("*.md")):
        blocks = re.findall(r"```promql\n(.*?)```", page.read_text(), re.DOTALL)
        every += [(page.stem, line.strip()) for block in blocks for line in block.strip().splitlines()]
    return every


@pytest.mark.parametrize(("where", "expr"), asked())
def test_a_query_parses_and_names_only_metrics_and_labels_of_the_table(where, expr):
    found = selectors(expr)
    assert {name for name, _ in found} <= LABELS.keys() | FOREIGN
    for name, labels in found:
        assert labels <= LABELS.get(name, labels) | TARGET_LABELS


@pytest.mark.parametrize("page", sorted(Path("alerts").rglob("*.md")), ids=lambda page: page.stem)
def test_a_runbook_names_only_metrics_of_the_table(page):
    assert set(re.findall(r"pinchpoint_\w+", page.read_text())) <= LABELS.keys()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_speaks_only_of_labels_that_its_query_can_have(alert):
    known = {"instance", "job"}
    for name, _ in selectors(alert.expr):
        known |= LABELS.get(name, set())
    used = set(re.findall(r"\$labels\.(\w+)", alert.description + alert.dashboard))
    assert used <= known
    assert not any(
        name in alert.description for name in re.findall(r"pinchpoint_\w+", alert.description) if name not in LABELS
    )


def test_label_values_in_alerts_are_values_that_exist():
    text = "\n".join(alert.expr for alert in ALERTS)
    classes = re.search(r'class!~"([^"]+)"', text).group(1).split("|")
    classes += re.findall(r'class="(\w+)"', text)
    assert set(classes) <= set(Bottleneck)
    throttles = re.findall(r'throttle_seconds_total\{reason="(\w+)"', text)
    assert throttles
    assert set(throttles) <= set(ThrottleReason)
    signals = set(re.findall(r'diagnosis_signal\{signal="(\w+)"', text))
    assert signals == {"probe_hosted_ttft_seconds", "probe_local_ttft_seconds"}
    assert signals <= {field.name for field in fields(Compared)}
