"""What alerts and dashboards ask for must exist: the metric table is the one place that names a metric."""

import json
import re
from dataclasses import fields
from pathlib import Path

import promql_parser
import pytest

from pinchpoint.alerting import ALERTS
from pinchpoint.diagnosis.compared import Compared
from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.catalog import CATALOG
from pinchpoint.snapshot import ThrottleReason
from tests.contracts.dashboard_queries import panels, queries, substituted

DASHBOARDS = sorted(Path("grafana/dashboards").glob("*.json"))
RUNBOOKS = Path("alerts/runbooks")
LABELS = {name: set(metric.labels) for metric in CATALOG for name in metric.series_names}
# Made by Prometheus itself, or by the process.
FOREIGN = {"up", "ALERTS", "process_start_time_seconds", "process_cpu_seconds_total"}
TARGET_LABELS = {"job", "instance", "le", "alertname", "alertstate"}


def selectors(expr: str) -> list[tuple[str, set[str]]]:
    """(metric, labels in its matchers) of each selector in ``expr``; raises ``ValueError`` when it does not parse."""
    found = []

    def walk(node):
        match node:
            case promql_parser.VectorSelector():
                found.append((node.name, {matcher.name for matcher in node.matchers.matchers}))
            case promql_parser.MatrixSelector():
                walk(node.vector_selector)
            case promql_parser.AggregateExpr() | promql_parser.ParenExpr() | promql_parser.UnaryExpr():
                walk(node.expr)
            case promql_parser.BinaryExpr():
                walk(node.lhs)
                walk(node.rhs)
            case promql_parser.Call():
                for argument in node.args:
                    walk(argument)
            case promql_parser.NumberLiteral() | promql_parser.StringLiteral():
                pass
            case _:
                raise ValueError(f"{type(node)} in {expr}")

    walk(promql_parser.parse(expr))
    return found


def asked() -> list[tuple[str, str]]:
    every = [(alert.name, alert.expr) for alert in ALERTS]
    for path in DASHBOARDS:
        every += queries(path)
        for annotation in json.loads(path.read_text())["annotations"]["list"]:
            every.append((annotation["name"], substituted(annotation["expr"])))
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


def test_every_class_has_a_word_and_a_colour_on_the_timeline():
    (dashboard,) = (json.loads(path.read_text()) for path in DASHBOARDS)
    (timeline,) = (panel for panel in panels(dashboard) if panel["title"] == "Bottleneck")
    (mapping,) = timeline["fieldConfig"]["defaults"]["mappings"]
    assert list(mapping["options"]) == [str(code) for code in range(len(Bottleneck))]
