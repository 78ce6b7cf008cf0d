"""The dashboards keep the rules of Grafana's dashboard-linter, and a few of our own."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pinchpoint.outputs.dashboards import dashboard_files
from tests.contracts.dashboard_queries import MAY_BE_EMPTY, panels, queries

FILES = sorted(Path("grafana/dashboards").glob("*.json"))
UNITS = {"short", "none", "s", "percentunit", "bytes", "Bps", "celsius", "watt", "hertz", "cps", "reqps", "ops"}
every_dashboard = pytest.mark.parametrize(
    "dashboard", [json.loads(f.read_text()) for f in FILES], ids=lambda d: d["uid"]
)


def titled(dashboard):
    return {panel["title"]: panel for panel in panels(dashboard)}


def test_the_committed_dashboards_are_the_generated_ones():
    assert {file.name: file.read_text() for file in FILES} == dashboard_files()


@every_dashboard
def test_it_is_made_to_be_provisioned(dashboard):
    assert dashboard["editable"] is False
    assert dashboard["id"] is None
    assert "__inputs" not in dashboard
    assert "version" not in dashboard
    assert f"{dashboard['uid']}.json" in dashboard_files()


@every_dashboard
def test_the_data_source_is_a_variable_and_every_panel_uses_it(dashboard):
    (source,) = (v for v in dashboard["templating"]["list"] if v["type"] == "datasource")
    assert (source["name"], source["label"], source["query"]) == ("datasource", "Data source", "prometheus")
    for panel in panels(dashboard):
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["datasource"]["uid"] == "${datasource}" for target in panel["targets"])
    for entry in dashboard["annotations"]["list"]:
        assert entry["datasource"]["uid"] == "${datasource}"


@every_dashboard
def test_job_and_instance_can_be_chosen_several_or_all_at_once(dashboard):
    chosen = {v["name"]: v for v in dashboard["templating"]["list"] if v["type"] == "query"}
    assert {"job", "instance"} <= chosen.keys()
    for name, variable in chosen.items():
        assert variable["label"] == name.capitalize()
        assert (variable["multi"], variable["allValue"], variable["refresh"]) == (True, ".+", 2)
        assert variable["datasource"]["uid"] == "${datasource}"
        assert re.fullmatch(rf"label_values\(pinchpoint_\w+(\{{.*\}})?, {name}\)", variable["query"]["query"])


@every_dashboard
def test_every_panel_has_a_title_of_its_own_a_description_a_unit_and_a_query(dashboard):
    assert len(titled(dashboard)) == len(list(panels(dashboard)))
    for panel in panels(dashboard):
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["targets"]
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters))


@every_dashboard
def test_every_selector_of_a_scraped_metric_can_be_narrowed_to_a_job_and_an_instance(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            selectors = re.findall(r"((?:pinchpoint|process)_\w+)(\{[^}]*\})?", target["expr"])
            assert selectors or "ALERTS" in target["expr"]
            for name, matchers in selectors:
                assert 'job=~"$job"' in matchers, name
                assert 'instance=~"$instance"' in matchers, name


@every_dashboard
def test_counters_are_shown_as_rates_over_an_interval_that_fits_the_scrape(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            counters = re.findall(r"\w+(?:_total|_bucket|_sum|_count)\{", target["expr"])
            rated = re.findall(r"rate\(\w+(?:_total|_bucket|_sum|_count)\{", target["expr"])
            assert len(counters) == len(rated), target["expr"]
            assert set(re.findall(r"\[(.+?)\]", target["expr"])) <= {"$__rate_interval"}


@every_dashboard
def test_quantiles_keep_the_bucket_label(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            if "histogram_quantile" in target["expr"]:
                assert re.search(r"sum by \([^)]*\ble\b[^)]*\) \(rate\(", target["expr"])


@every_dashboard
def test_ratios_end_at_one(dashboard):
    for panel in panels(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        if defaults["unit"] == "percentunit" and "stacking" not in defaults["custom"]:
            assert (defaults["min"], defaults["max"]) == (0, 1)


@every_dashboard
def test_no_two_panels_overlap_and_none_leaves_the_grid(dashboard):
    taken = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        columns = range(place["x"], place["x"] + place["w"])
        cells = {(x, place["y"] + line) for x in columns for line in range(place["h"])}
        assert not cells & taken
        assert columns.stop <= 24
        taken |= cells
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_panels_that_may_be_empty_are_named_as_they_are(file):
    assert {title for title, _ in queries(file)} >= MAY_BE_EMPTY


@every_dashboard
def test_a_panel_that_is_empty_on_a_node_that_is_well_says_why(dashboard):
    needs_a_probe = {
        panel["title"]
        for panel in panels(dashboard)
        if all("pinchpoint_probe_" in target["expr"] for target in panel["targets"])
    }
    for title in MAY_BE_EMPTY | needs_a_probe | {"Bottleneck", "PCIe traffic"}:
        panel = titled(dashboard)[title]
        why = panel["fieldConfig"]["defaults"]["noValue"]
        assert panel["description"].endswith(f"Empty: {why}.")


def test_provisioning_reads_what_is_there():
    (source,) = yaml.safe_load(Path("grafana/provisioning/datasources/pinchpoint.yaml").read_text())["datasources"]
    assert (source["type"], source["uid"]) == ("prometheus", "prometheus")
    (provider,) = yaml.safe_load(Path("grafana/provisioning/dashboards/pinchpoint.yaml").read_text())["providers"]
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
