"""The queries of a dashboard as Prometheus takes them: Grafana's variables are filled in."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FILES = sorted(Path("grafana/dashboards").glob("*.json"))
VALUES = {
    "__rate_interval": "1m",
    "__interval": "15s",
    "__range": "1h",
    "instance": ".+",
    "engine": ".+",
    "model": ".*",
    "gpu": ".+",
    "job": ".+",
    "gpu_hour_usd": "2.5",
}


def dashboards() -> dict[str, dict[str, Any]]:
    """The committed dashboards by uid."""
    return {dashboard["uid"]: dashboard for dashboard in (json.loads(file.read_text()) for file in FILES)}


def panels(dashboard: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every panel that is not a row, those in collapsed rows too."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def substituted(expr: str, values: Mapping[str, str] = VALUES) -> str:
    """``expr`` with each variable's value; raises ``ValueError`` when a variable is not known."""
    for name in sorted(values, key=len, reverse=True):  # $gpu is the beginning of $gpu_hour_usd
        expr = re.sub(rf"\$\{{{name}(:\w+)?\}}|\${name}\b", lambda _, name=name: values[name], expr)
    if "$" in expr:
        raise ValueError(f"a variable is left in {expr}")
    return expr


def queries(dashboard: Mapping[str, Any], values: Mapping[str, str] = VALUES) -> list[tuple[str, str]]:
    """(panel title, PromQL) of each target of each panel."""
    return [(p["title"], substituted(t["expr"], values)) for p in panels(dashboard) for t in p["targets"]]


def marks(dashboard: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(name, PromQL) of each annotation."""
    return [(each["name"], substituted(each["expr"])) for each in dashboard["annotations"]["list"]]


def choices(dashboard: Mapping[str, Any]) -> dict[str, str]:
    """The query of each variable that has one, not yet substituted."""
    return {v["name"]: v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"}
