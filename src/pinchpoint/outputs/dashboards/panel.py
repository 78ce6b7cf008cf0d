"""What panels are made of: Grafana's classic JSON, and no more of it than is needed."""

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
# Okabe and Ito's palette: told apart by colour-blind eyes too.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, RED, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#8A8F98"


def query(expr: str, legend: str = "", *, instant: bool = False) -> Json:
    """A target. ``expr`` writes ``@`` for the matchers that each selector needs: ``pinchpoint_gpu_up{@}``."""
    matchers = 'job=~"$job", instance=~"$instance"'
    form: Json = {"format": "table", "instant": True, "range": False} if instant else {"range": True}
    return {"datasource": DATASOURCE, "expr": expr.replace("@", matchers), "legendFormat": legend, **form}


def value_map(words: Mapping[int, tuple[str, str]]) -> list[Json]:
    """Numbers to a word and a colour each."""
    options = {str(code): {"text": text, "color": color, "index": code} for code, (text, color) in words.items()}
    return [{"type": "value", "options": options}]


def _panel(kind: str, title: str, text: str, targets: Iterable[Json], width: int, height: int) -> Json:
    lettered = [{**target, "refId": chr(ord("A") + number)} for number, target in enumerate(targets)]
    return {
        "type": kind,
        "title": title,
        "description": text,
        "datasource": DATASOURCE,
        "gridPos": {"h": height, "w": width, "x": 0, "y": 0},
        "targets": lettered,
    }


def _series(
    title: str, text: str, targets: Iterable[Json], unit: str, width: int, custom: Json, most: float | None
) -> Json:
    defaults: Json = {"unit": unit, "min": 0, "custom": custom}
    if most is not None:
        defaults["max"] = most
    tooltip: Json = {"mode": "multi", "sort": "desc"}
    legend: Json = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    panel = _panel("timeseries", title, text, targets, width, 8)
    return {**panel, "fieldConfig": _fields(defaults), "options": {"tooltip": tooltip, "legend": legend}}


def _fields(defaults: Json) -> Json:
    return {"defaults": defaults, "overrides": []}


def lines(
    title: str,
    text: str,
    *targets: Json,
    unit: str,
    width: int = 8,
    most: float | None = None,
    limit: float | None = None,
) -> Json:
    """Lines over time; ``most`` is the axis' end, ``limit`` draws a dashed threshold."""
    custom: Json = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 8, "showPoints": "auto", "spanNulls": False}
    if limit is not None:
        custom["thresholdsStyle"] = {"mode": "dashed"}
    panel = _series(title, text, targets, unit, width, custom, most)
    if limit is not None:
        steps = [{"color": "transparent", "value": None}, {"color": RED, "value": limit}]
        panel["fieldConfig"]["defaults"]["thresholds"] = {"mode": "absolute", "steps": steps}
    return panel


def shares(title: str, text: str, *targets: Json, unit: str, width: int = 8) -> Json:
    """Stacked areas that fill the panel: parts of a whole."""
    stacking: Json = {"mode": "percent", "group": "A"}
    custom: Json = {"drawStyle": "line", "lineWidth": 0, "fillOpacity": 70, "stacking": stacking, "spanNulls": False}
    return _series(title, text, targets, unit, width, custom, None)


def timeline(title: str, text: str, *targets: Json, words: Mapping[int, tuple[str, str]], width: int = 24) -> Json:
    """A bar per series in the colour of its state. A gap stays a gap: ``insertNulls`` is thrice a slow scrape."""
    custom: Json = {"fillOpacity": 80, "lineWidth": 0, "spanNulls": False, "insertNulls": 90_000}
    defaults: Json = {
        "unit": "none",
        "custom": custom,
        "mappings": value_map(words),
        "color": {"mode": "palette-classic"},
    }
    options: Json = {"mergeValues": True, "showValue": "auto", "rowHeight": 0.8, "legend": {"showLegend": False}}
    panel = _panel("state-timeline", title, text, targets, width, 7)
    return {**panel, "fieldConfig": _fields(defaults), "options": options}


def stat(
    title: str, text: str, target: Json, *, unit: str = "short", red_from_one: bool = True, width: int = 4
) -> Json:
    """One number, and whether it is bad news from 1 on."""
    steps: list[Json] = [{"color": GREEN if red_from_one else BLUE, "value": None}]
    if red_from_one:
        steps.append({"color": RED, "value": 1})
    thresholds: Json = {"mode": "absolute", "steps": steps}
    options: Json = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value"}
    panel = _panel("stat", title, text, [target], width, 4)
    return {**panel, "fieldConfig": _fields({"unit": unit, "thresholds": thresholds}), "options": options}


def table(title: str, text: str, target: Json, *, width: int = 8) -> Json:
    """The labels of an instant query."""
    organize: Json = {"excludeByName": dict.fromkeys(("Time", "Value", "__name__", "job"), True)}
    panel = _panel("table", title, text, [target], width, 7)
    transformations = [{"id": "organize", "options": organize}]
    return {**panel, "fieldConfig": _fields({"unit": "none"}), "options": {}, "transformations": transformations}


def empty_means(why: str, panel: Json) -> Json:
    """``panel`` that says ``why`` where it would say "No data", and in its description too."""
    defaults = {**panel["fieldConfig"]["defaults"], "noValue": why}
    return {**panel, "description": f"{panel['description']} Empty: {why}.", "fieldConfig": _fields(defaults)}


def laid_out(rows: Iterable[tuple[str, tuple[Json, ...]]]) -> list[Json]:
    """Panels under their row titles, left to right in 24 columns, with their places and ids."""
    placed: list[Json] = []
    y = 0
    for title, panels in rows:
        placed.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": _place(1, 24, 0, y)})
        y, x, tallest = y + 1, 0, 0
        for panel in panels:
            size = panel["gridPos"]
            if x + size["w"] > 24:
                y, x, tallest = y + tallest, 0, 0
            placed.append({**panel, "gridPos": _place(size["h"], size["w"], x, y)})
            x, tallest = x + size["w"], max(tallest, size["h"])
        y += tallest
    return [{"id": number, **panel} for number, panel in enumerate(placed, start=1)]


def _place(height: int, width: int, x: int, y: int) -> Json:
    return {"h": height, "w": width, "x": x, "y": y}
