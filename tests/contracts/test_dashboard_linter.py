"""The rules of Grafana's dashboard-linter, which has no Python package, under their own names.

What a rule would refuse and is meant stands in ``EXCLUDED``, with its reason.
"""

import re

import pytest

from tests.contracts.dashboard_queries import choices, dashboards, panels, substituted
from tests.contracts.promql import Selector, selectors

DASHBOARDS = dashboards()
every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)

# (rule, uid, panel) -> why. A window of its own: the question is about an hour, a day or all of the time shown.
EXCLUDED = {
    ("target-counter-agg", "pinchpoint-gpu", "Uncorrectable errors"): "what it is since the driver was loaded matters",
    ("target-counter-agg", "pinchpoint-gpu", "GPUs"): "what it is since the driver was loaded matters",
    ("target-rate-interval", "pinchpoint-fleet", "Spent on probes"): "all of the time shown",
    ("target-rate-interval", "pinchpoint-capacity", "Time in each class"): "all of the time shown",
    ("target-rate-interval", "pinchpoint-capacity", "Time in trouble"): "of each hour",
    ("target-rate-interval", "pinchpoint-capacity", "First tokens in time"): "of each hour",
    ("target-rate-interval", "pinchpoint-capacity", "Headroom"): "all of the time shown",
    ("target-rate-interval", "pinchpoint-capacity", "Requests"): "of each hour",
    ("target-rate-interval", "pinchpoint-capacity", "Tokens generated"): "of each hour",
    ("target-rate-interval", "pinchpoint-capacity", "Cost of a million tokens"): "of each day",
    ("target-rate-interval", "pinchpoint-capacity", "Energy"): "of each day",
    ("target-rate-interval", "pinchpoint-capacity", "Spent on probes"): "of each day",
}
_COUNTER = re.compile(r"_(total|sum|count|bucket)$")
_RATED = {"rate", "irate", "increase", "resets", "changes"}
_WINDOW = re.compile(r"\b(?:rate|irate|increase)\([^\[]*\[([^\]]+)\]")


def variable(dashboard, name):
    (found,) = (v for v in dashboard["templating"]["list"] if v["name"] == name)
    return found


def targets(dashboard):
    """(panel title, target) of every panel."""
    return [(panel["title"], target) for panel in panels(dashboard) for target in panel["targets"]]


def broken(rule, dashboard, is_broken) -> list[str]:
    """The panels of which a target breaks a rule. An exclusion that excludes nothing is an error, too."""
    found = {title for title, target in targets(dashboard) if is_broken(target)}
    excluded = {title for its_rule, uid, title in EXCLUDED if (its_rule, uid) == (rule, dashboard["uid"])}
    assert excluded <= found, "these need no exclusion any more"
    return sorted(found - excluded)


def every_selector(dashboard) -> list[Selector]:
    return [each for _, target in targets(dashboard) for each in selectors(substituted(target["expr"]))]


@every_dashboard
def test_template_datasource(dashboard):
    (source,) = (v for v in dashboard["templating"]["list"] if v["type"] == "datasource")
    assert (source["name"], source["label"], source["query"]) == ("datasource", "Data source", "prometheus")


@every_dashboard
@pytest.mark.parametrize("name", ["job", "instance"])
def test_template_job_and_template_instance(dashboard, name):
    chosen = variable(dashboard, name)
    assert (chosen["type"], chosen["label"]) == ("query", name.capitalize())
    assert (chosen["multi"], chosen["includeAll"], chosen["allValue"]) == (True, True, ".+")
    assert chosen["datasource"]["uid"] == "${datasource}"


@every_dashboard
def test_template_label_promql(dashboard):
    for name, query in choices(dashboard).items():
        inner = re.fullmatch(rf"label_values\((.+), {name}\)|query_result\((.+)\)", query)
        assert inner, query
        assert selectors(substituted(inner[1] or inner[2]))


@every_dashboard
def test_template_on_time_change_reload(dashboard):
    assert {v["refresh"] for v in dashboard["templating"]["list"] if v["type"] == "query"} == {2}


@every_dashboard
def test_panel_datasource(dashboard):
    sources = [panel["datasource"] for panel in panels(dashboard)]
    sources += [target["datasource"] for _, target in targets(dashboard)]
    sources += [entry["datasource"] for entry in dashboard["annotations"]["list"]]
    assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)


@every_dashboard
def test_panel_title_description(dashboard):
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"].endswith("."), panel["title"]


@every_dashboard
def test_panel_no_targets(dashboard):
    assert all(panel["targets"] for panel in panels(dashboard))


@every_dashboard
def test_target_promql(dashboard):
    assert every_selector(dashboard)  # raises where one does not parse


@every_dashboard
def test_target_logql_and_target_logql_auto(dashboard):
    assert all(target["datasource"]["type"] != "loki" for _, target in targets(dashboard))


@every_dashboard
def test_target_rate_interval(dashboard):
    def is_broken(target):
        return bool(set(_WINDOW.findall(target["expr"])) - {"$__rate_interval"})

    assert broken("target-rate-interval", dashboard, is_broken) == []


@every_dashboard
@pytest.mark.parametrize("label", ["job", "instance"])
def test_target_job_and_target_instance(dashboard, label):
    for title, target in targets(dashboard):
        # With the variable's name for a value, as it stands in the dashboard.
        named = substituted(target["expr"], {**_NAMES, **_WINDOWS})
        for selector in selectors(named):
            is_alerts = selector.name == "ALERTS"  # a rule that adds up has no instance
            assert is_alerts or (label, "=~", f"${label}".strip("$")) in selector.matchers, (title, selector)


@every_dashboard
def test_target_counter_agg(dashboard):
    def is_broken(target):
        counters = [s for s in selectors(substituted(target["expr"])) if _COUNTER.search(s.name)]
        return any(not counter.within or counter.within[-1] not in _RATED for counter in counters)

    assert broken("target-counter-agg", dashboard, is_broken) == []


@every_dashboard
def test_uneditable(dashboard):
    assert dashboard["editable"] is False


_NAMES = {name: name for name in ("job", "instance", "engine", "model", "gpu")} | {"gpu_hour_usd": "1"}
_WINDOWS = {"__rate_interval": "5m", "__interval": "1m", "__range": "1h"}
