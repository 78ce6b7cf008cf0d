"""The alerts on the status page."""

from dataclasses import replace

from pinchpoint.outputs.web.alerts import MOST_SHOWN, panel
from pinchpoint.outputs.web.page import page
from pinchpoint.outputs.web.status import status
from pinchpoint.snapshot import AlertingReport
from tests.outputs.exposition.scenes import alerting, full_scene

NOW = 1e9 + 65


def test_what_fires_and_what_is_about_to_is_on_the_page_with_its_remedy() -> None:
    shown = str(panel(alerting(), NOW))
    assert "Alerts: 1 firing, 1 pending" in shown
    assert "has held 95 % of its KV-cache blocks" in shown
    assert "firing for 1\N{NO-BREAK SPACE}min 5\N{NO-BREAK SPACE}s" in shown
    assert "PinchpointWatchdog" not in shown  # it fires when all is well
    assert 'id="alerts"' in page(full_scene())


def test_an_alertmanager_that_is_not_reached_is_said_and_one_that_is_well_is_not() -> None:
    assert "http://alertmanager:9093" in str(panel(alerting(), NOW))
    well = replace(alerting(), alertmanagers=(replace(alerting().alertmanagers[0], up=True),))
    assert "http://alertmanager:9093" not in str(panel(well, NOW))


def test_where_nothing_is_evaluated_or_nothing_is_wrong_there_is_no_panel() -> None:
    assert panel(None, NOW) is None
    assert panel(AlertingReport(), NOW) is None


def test_a_flood_is_cut() -> None:
    flood = tuple(replace(alerting().active[0], labels={"engine": str(n)}) for n in range(MOST_SHOWN + 5))
    assert "and 5 more" in str(panel(replace(alerting(), active=flood), NOW))


def test_the_json_has_all_of_it_under_alerting() -> None:
    told = status(full_scene())["alerting"]
    assert isinstance(told, dict)
    assert [(each["alert"], each["state"]) for each in told["active"]] == [
        ("PinchpointKVCacheHigh", "firing"),
        ("PinchpointGPULost", "pending"),
        ("PinchpointWatchdog", "firing"),
    ]
    assert told["alertmanagers"][0]["notifications_failed_total"] == {"timeout": 2}
