"""Draws a dashboard from a real Prometheus' answers, so that eyes can look at it: a sketch of Grafana, which it is not.

``answers`` asks every query of a dashboard as Grafana would; ``page`` is one HTML document that lays the panels out on
24 columns and draws them with Plotly.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.contracts.dashboard_queries import VALUES, panels, substituted
from tests.e2e.stack import Prometheus

_STEPS = 240
_SCRAPE_SECONDS = 15.0
_HERE = Path(__file__).parent


async def answers(
    database: Prometheus, dashboard: dict[str, Any], begin: float, end: float, chosen: dict[str, str]
) -> dict[str, Any]:
    """Each panel's series or rows in the time from ``begin`` to ``end``, and the marks. ``chosen`` are variables."""
    step = max(_SCRAPE_SECONDS, round((end - begin) / _STEPS))
    values = {
        **VALUES,
        "__rate_interval": f"{max(4 * _SCRAPE_SECONDS, step + _SCRAPE_SECONDS):.0f}s",
        "__interval": f"{step:.0f}s",
        "__range": f"{end - begin:.0f}s",
        **chosen,
    }

    async def series(expr: str) -> list[dict[str, Any]]:
        asked = {"query": substituted(expr, values), "start": f"{begin}", "end": f"{end}", "step": f"{step}"}
        return list((await database.get("/api/v1/query_range", **asked))["data"]["result"])

    async def rows(expr: str) -> list[dict[str, Any]]:
        asked = {"query": substituted(expr, values), "time": f"{end}"}
        return list((await database.get("/api/v1/query", **asked))["data"]["result"])

    told: dict[int, list[dict[str, Any]]] = {}
    for panel in panels(dashboard):
        told[panel["id"]] = [
            {
                "refId": target["refId"],
                "legend": target["legendFormat"],
                "result": await (rows if target.get("instant") else series)(target["expr"]),
            }
            for target in panel["targets"]
        ]
    marks = [
        {"name": entry["name"], "color": entry["iconColor"], "result": await series(entry["expr"])}
        for entry in dashboard["annotations"]["list"]
    ]
    return {"begin": begin, "end": end, "step": step, "panels": told, "marks": marks}


def page(dashboard: dict[str, Any], told: dict[str, Any], theme: str = "dark") -> str:
    """One document, scripts and data in it."""
    plotly = (files("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    css, js = (_HERE / "viewer.css").read_text(), (_HERE / "viewer.js").read_text()
    data = json.dumps({"dashboard": dashboard, "told": told}).replace("</", "<\\/")
    return (
        f'<!doctype html><html class="{theme}"><meta charset="utf-8"><style>{css}</style><body><main></main>'
        f"<script>{plotly}</script><script>const INPUT = {data};</script><script>{js}</script></body></html>"
    )
