"""The viewer draws every dashboard, whatever kind of panel is on it."""

import re
from pathlib import Path

import pytest

from tests.contracts.dashboard_queries import dashboards, panels
from tests.e2e.browser import Chromium
from tests.e2e.viewer import page

BEGIN, STEP = 1_700_000_000.0, 60.0


def answer(target) -> dict:
    """Two series that bear whatever the legend names."""
    labels = {*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]), "engine"}
    series = [{label: f"{label}-{number}" for label in labels} for number in (1, 2)]
    for metric, bound in zip(series, ("0.1", "+Inf"), strict=True):
        metric["le"] = bound
    if target.get("instant"):
        result = [{"metric": metric, "value": [BEGIN, "1"]} for metric in series]
    else:
        values = [[BEGIN + STEP * step, f"{step % 2}"] for step in range(30) if step not in (10, 11, 12)]
        result = [{"metric": metric, "values": values} for metric in series]
    return {"refId": target["refId"], "legend": target["legendFormat"], "result": result}


def told(dashboard, *, empty: bool = False) -> dict:
    answers = {
        panel["id"]: [{**answer(target), **({"result": []} if empty else {})} for target in panel["targets"]]
        for panel in panels(dashboard)
    }
    marks = [{"name": "Alerts", "color": "#D55E00", "result": [{"metric": {}, "values": [[BEGIN + 300, "1"]]}]}]
    return {"begin": BEGIN, "end": BEGIN + 30 * STEP, "step": STEP, "panels": answers, "marks": marks}


@pytest.mark.parametrize("empty", [False, True], ids=["full", "empty"])
async def test_every_panel_is_drawn_in_its_place(tmp_path: Path, empty: bool) -> None:
    async with Chromium() as browser:
        for uid, dashboard in dashboards().items():
            document = tmp_path / f"{uid}.html"
            document.write_text(page(dashboard, told(dashboard, empty=empty)))
            await browser.open(document.as_uri(), 1500)
            drawn = await browser.evaluate(
                "[...document.querySelectorAll('section')].map((s) => [s.querySelector('h2').textContent,"
                " !!s.querySelector('svg.main-svg, table, .stat, .gauge'), s.textContent])"
            )
            assert [title for title, _, _ in drawn] == [panel["title"] for panel in panels(dashboard)]
            assert {is_drawn for _, is_drawn, _ in drawn} == {not empty}
            if empty:
                for panel, (title, _, text) in zip(panels(dashboard), drawn, strict=True):
                    assert text == title + panel["fieldConfig"]["defaults"].get("noValue", "No data")
        assert browser.complaints == []
