"""The dashboards are what Grafana's published schema says; and the check itself finds what is not."""

import copy

import pytest

from tests.contracts.dashboard_queries import dashboards, panels
from tests.contracts.grafana_schema import known_units, unknown_keys, wrong_types

DASHBOARDS = dashboards()
every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)


@every_dashboard
def test_every_key_is_one_that_grafana_knows(dashboard):
    assert unknown_keys(dashboard) == set()


@every_dashboard
def test_every_value_is_of_its_type(dashboard):
    assert wrong_types(dashboard) == []


@every_dashboard
def test_every_unit_is_one_that_grafana_knows(dashboard):
    for panel in panels(dashboard):
        config = panel["fieldConfig"]
        used = [config["defaults"]["unit"]]
        used += [p["value"] for o in config["overrides"] for p in o["properties"] if p["id"] == "unit"]
        unknown = {unit for unit in used if not unit.startswith("suffix: ")} - known_units() - {"none"}
        assert unknown == set(), panel["title"]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda panel: panel.update(colour="red"), "panels.*.colour"),
        (lambda panel: panel["targets"][0].update(query="up"), "panels.*.targets.*.query"),
        (lambda panel: panel["options"].update(colour="red"), "panels.*.options.colour"),
    ],
)
def test_a_key_that_grafana_does_not_know_is_found(change, found):
    broken = copy.deepcopy(DASHBOARDS["pinchpoint-fleet"])
    change(next(panels(broken)))
    assert unknown_keys(broken) == {found}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda panel: panel["fieldConfig"]["defaults"].update(min="0"), "min_val is '0'"),
        (lambda panel: panel["options"].update(colorMode="purple"), "color_mode is 'purple'"),
        (lambda panel: panel["gridPos"].update(w=4.5), "w is 4.5"),
    ],
)
def test_a_value_of_another_type_is_found(change, found):
    broken = copy.deepcopy(DASHBOARDS["pinchpoint-fleet"])
    change(next(panels(broken)))
    (line,) = wrong_types(broken)
    assert found in line
