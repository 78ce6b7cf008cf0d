"""The dashboards are the generated ones, ask only for what is exported, and lead to one another."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pinchpoint.diagnosis.verdict import Bottleneck
from pinchpoint.outputs.catalog import CATALOG, Kind
from pinchpoint.outputs.dashboards import dashboard_files
from pinchpoint.snapshot import GpuState
from tests.contracts.dashboard_queries import FILES, VALUES, choices, dashboards, marks, panels, queries, substituted
from tests.contracts.promql import grouping_labels, selectors

DASHBOARDS = dashboards()
every_dashboard = pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=DASHBOARDS)
UIDS = {f"pinchpoint-{name}" for name in ("fleet", "engine", "gpu", "capacity", "self")}
SCRAPED = {"job", "instance"}
# What Prometheus adds to a scrape, the Python process tells of itself, and rules leave behind.
OTHERS = {
    **{f"scrape_{each}": set() for each in ("duration_seconds", "samples_scraped")},
    **{f"process_{each}": set() for each in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "max_fds")},
    "process_start_time_seconds": set(),
    "ALERTS": {"alertname", "alertstate", "severity", "engine", "replica", "gpu", "target"},
}
LABELS = {
    **{
        series: {*metric.labels, *({"le"} if metric.kind is Kind.HISTOGRAM and series.endswith("_bucket") else ())}
        for metric in CATALOG
        for series in metric.series_names
    },
    **OTHERS,
}
CLASSES, STATES, SIGNALS = set(Bottleneck), set(GpuState), {"ttft", "tpot", "ttfc", "characters_per_second"}
RULES = Path("alerts/pinchpoint.rules.yml")
FIXED_WINDOWS = {"1h", "1d", "$__range"}  # capacity is judged by hours and days


def every_expression(dashboard) -> list[str]:
    asked = [expr for _, expr in [*queries(dashboard), *marks(dashboard)]]
    inner = (re.search(r"\((.*)\)$", query) for query in choices(dashboard).values())
    return asked + [substituted(re.sub(r", \w+$", "", each[1])) for each in inner if each]


def test_the_committed_dashboards_are_the_generated_ones():
    assert {file.name: file.read_text() for file in FILES} == dashboard_files()
    assert set(DASHBOARDS) == UIDS


@every_dashboard
def test_it_is_made_to_be_provisioned(dashboard):
    assert dashboard["id"] is None
    assert not {"__inputs", "__requires", "version"} & dashboard.keys()
    assert not re.search(r"\$\{DS_", json.dumps(dashboard))


@every_dashboard
def test_every_metric_is_exported_with_the_labels_that_are_asked_for(dashboard):
    for expr in every_expression(dashboard):
        found = selectors(expr)
        assert found, expr
        there = SCRAPED.copy()
        for selector in found:
            assert selector.name in LABELS, expr
            own = LABELS[selector.name] | SCRAPED
            there |= own
            assert {label for label, _, _ in selector.matchers} <= own, (selector, expr)
        assert grouping_labels(expr) <= there, expr


@every_dashboard
def test_every_legend_names_labels_that_the_answer_bears(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            expr = substituted(target["expr"])
            grouped = re.match(r"(?:1 - |86400 \* |histogram_quantile\(0\.\d+, )?(?:sum|max|min) by \(([^)]*)\)", expr)
            there = set(grouped[1].split(", ")) if grouped else LABELS[selectors(expr)[0].name] | SCRAPED
            assert named <= there, (panel["title"], expr)


@every_dashboard
def test_values_of_a_matcher_are_such_as_exist(dashboard):
    """Of labels whose values are a closed set: a reason that was renamed would be a panel that stays empty."""
    known = {"class": CLASSES, "state": STATES, "signal": SIGNALS, "placement": {"local", "hosted"}}
    for expr in every_expression(dashboard):
        for selector in selectors(expr):
            for label, _, value in selector.matchers:
                if label in known and selector.name != "pinchpoint_diagnosis_signal":
                    assert set(value.split("|")) <= known[label], expr


@pytest.mark.parametrize("uid", ["pinchpoint-fleet", "pinchpoint-engine"])
def test_every_class_has_a_word_and_a_colour_on_the_timeline(uid):
    (timeline,) = (panel for panel in panels(DASHBOARDS[uid]) if panel["title"] == "Bottleneck over time")
    (mapping,) = timeline["fieldConfig"]["defaults"]["mappings"]
    assert list(mapping["options"]) == [str(code) for code in range(len(Bottleneck))]
    assert all(look["text"] and look["color"] for look in mapping["options"].values())


@every_dashboard
def test_every_panel_has_a_title_of_its_own_and_letters_for_its_targets(dashboard):
    titles = [panel["title"] for panel in panels(dashboard)]
    assert len(titles) == len(set(titles))
    for panel in panels(dashboard):
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))


@every_dashboard
def test_windows_fit_the_scrape_or_are_an_hour_a_day_or_all_of_the_time(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            assert set(re.findall(r"\[([^\]]+)\]", target["expr"])) <= {"$__rate_interval", *FIXED_WINDOWS}


@every_dashboard
def test_quantiles_keep_the_bucket_label_and_heatmaps_too(dashboard):
    for panel in panels(dashboard):
        for target in panel["targets"]:
            if "histogram_quantile" in target["expr"] or panel["type"] == "heatmap":
                assert re.search(r"sum by \([^)]*\ble\b[^)]*\) \(rate\(", target["expr"])


@every_dashboard
def test_shares_end_at_one(dashboard):
    for panel in panels(dashboard):
        defaults = panel["fieldConfig"]["defaults"]
        free = panel["title"].startswith(("Power", "Open files"))  # above its limit for a moment; a share that is tiny
        if panel["type"] == "timeseries" and defaults["unit"] == "percentunit" and not free:
            assert (defaults["min"], defaults["max"]) == (0, 1), panel["title"]


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


@every_dashboard
def test_every_line_of_panels_fills_the_width(dashboard):
    widths: dict[int, int] = {}
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        widths[place["y"]] = widths.get(place["y"], 0) + place["w"]
    ragged = {y: width for y, width in widths.items() if width != 24}
    assert ragged == {}, [p["title"] for p in dashboard["panels"] if p["gridPos"]["y"] in ragged]


@every_dashboard
def test_a_panel_that_may_be_empty_says_why(dashboard):
    for panel in panels(dashboard):
        if why := panel["fieldConfig"]["defaults"].get("noValue"):
            assert panel["description"].endswith(f"Empty: {why}.")


@every_dashboard
def test_each_leads_to_the_others_with_time_and_choices(dashboard):
    (link,) = dashboard["links"]
    assert (link["type"], link["tags"], link["keepTime"], link["includeVars"]) == (
        "dashboards",
        ["pinchpoint"],
        True,
        True,
    )
    assert "pinchpoint" in dashboard["tags"]


@every_dashboard
def test_a_link_of_a_row_leads_to_a_dashboard_that_has_its_choices(dashboard):
    for uid, query in re.findall(r'"url": "/d/([\w-]+)\?([^"]*)"', json.dumps(dashboard)):
        there = {v["name"] for v in DASHBOARDS[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", query)) <= there
        assert set(re.findall(r"\$\{(\w+):queryparam\}", query)) <= there
        assert "${__url_time_range}" in query


def test_a_pages_link_leads_to_a_dashboard_that_has_its_choices():
    links = re.findall(r'dashboard_url: "/d/([\w-]+)(\?[^"]*)?"', RULES.read_text())
    assert links
    for uid, query in links:
        assert uid in DASHBOARDS
        there = {v["name"] for v in DASHBOARDS[uid]["templating"]["list"]}
        assert set(re.findall(r"var-(\w+)=", query)) <= there, uid


@every_dashboard
def test_only_variables_that_it_has_are_used(dashboard):
    there = {v["name"] for v in dashboard["templating"]["list"]}
    for panel in panels(dashboard):
        for target in panel["targets"]:
            assert set(re.findall(r"\$(\w+)", target["expr"])) <= there | {n for n in VALUES if n.startswith("__")}


@every_dashboard
def test_alerts_and_restarts_are_marked_on_every_panel(dashboard):
    names = [entry["name"] for entry in dashboard["annotations"]["list"]]
    assert names == ["Alerts", "Engine restarts", "pinchpoint restarts"]
    assert all(entry["enable"] for entry in dashboard["annotations"]["list"])


def test_provisioning_reads_what_is_there():
    (source,) = yaml.safe_load(Path("grafana/provisioning/datasources/pinchpoint.yaml").read_text())["datasources"]
    assert (source["type"], source["uid"]) == ("prometheus", "prometheus")
    (provider,) = yaml.safe_load(Path("grafana/provisioning/dashboards/pinchpoint.yaml").read_text())["providers"]
    assert provider["allowUiUpdates"] is False
    assert provider["options"]["path"] == "/var/lib/grafana/dashboards"
