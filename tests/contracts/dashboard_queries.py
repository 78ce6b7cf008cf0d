"""The queries of a dashboard as Prometheus takes them: Grafana's variables are filled in."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

# Longest first: $__rate_interval before $__range and $__interval.
VARIABLES = {
    "__rate_interval": "5m",
    "__interval": "1m",
    "__range": "1h",
    "instance": ".+",
    "engine": ".+",
    "job": ".+",
}

# Panels that are empty when nothing is wrong, or when the node has no such hardware or probe
# (or not yet enough probes to compare).
MAY_BE_EMPTY = frozenset(
    {
        "Advice",
        "First token: on the way",
        "Held down by",
        "Not available",
        "Ours over theirs",
        "Probe: failures",
        "Real activity",
        "Would more GPUs help?",
    }
)


def panels(dashboard: dict) -> Iterator[dict]:
    """Every panel that is not a row, those in collapsed rows too."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def substituted(expr: str) -> str:
    """``expr`` with each variable's value; raises ``ValueError`` when a variable is not known."""
    for name, value in VARIABLES.items():
        expr = re.sub(rf"\$\{{{name}(:\w+)?\}}|\${name}\b", value, expr)
    if "$" in expr:
        raise ValueError(f"a variable is left in {expr}")
    return expr


def queries(path: Path) -> list[tuple[str, str]]:
    """(panel title, PromQL) of each target of each panel."""
    dashboard = json.loads(path.read_text())
    return [(p["title"], substituted(target["expr"])) for p in panels(dashboard) for target in p["targets"]]
