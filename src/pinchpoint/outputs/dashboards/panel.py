"""What panels are made of: Grafana's classic JSON, and no more of it than is needed.

Every builder takes a title, a description and its targets; where a panel stands is ``layout``'s affair.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pinchpoint.outputs.dashboards.looks import BLUE, GREEN, RED, Parts, Words

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
MATCHERS = 'job=~"$job", instance=~"$instance"'
# Thrice a slow scrape: what is absent for longer is a gap. In milliseconds.
GAP = 90_000


def query(expr: str, legend: str = "", *, instant: bool = False, buckets: bool = False) -> Json:
    """A target. ``expr`` writes ``@`` for the matchers that each selector needs: ``pinchpoint_gpu_up{@}``.

    ``instant``: only the newest value, as a table. ``buckets``: a cumulative histogram by ``le``, for a heatmap.
    """
    form: Json = {"range": True, "format": "heatmap" if buckets else "time_series"}
    if instant:
        form = {"instant": True, "range": False, "format": "table"}
    told = legend or ("{{le}}" if buckets else "")
    return {"datasource": DATASOURCE, "expr": expr.replace("@", MATCHERS), "legendFormat": told, **form}


def fields(defaults: Json, overrides: Iterable[Json] = ()) -> Json:
    """A panel's ``fieldConfig``."""
    return {"defaults": defaults, "overrides": list(overrides)}


def override(name: str, properties: Mapping[str, object]) -> Json:
    """What one field, by its name, looks like."""
    told = [{"id": key, "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": told}


def value_map(words: Words) -> list[Json]:
    """Numbers to a word and a colour each."""
    options = {str(code): {"text": text, "color": color, "index": code} for code, (text, color) in words.items()}
    return [{"type": "value", "options": options}]


def steps(first: str, *further: tuple[float, str]) -> Json:
    """Thresholds: the colour from minus infinity on, then that from each value on."""
    bounds: list[Json] = [{"value": None, "color": first}]
    return {"mode": "absolute", "steps": bounds + [{"value": value, "color": color} for value, color in further]}


def panel(kind: str, title: str, text: str, targets: Iterable[Json], width: int, height: int) -> Json:
    """A panel without its looks; its targets are lettered from A."""
    lettered = [{**target, "refId": chr(ord("A") + number)} for number, target in enumerate(targets)]
    return {
        "type": kind,
        "title": title,
        "description": text,
        "datasource": DATASOURCE,
        "gridPos": {"h": height, "w": width, "x": 0, "y": 0},
        "targets": lettered,
    }


def lines(
    title: str,
    text: str,
    *targets: Json,
    unit: str,
    width: int = 8,
    most: float | None = None,
    limit: float | None = None,
    dashed: str = "",
) -> Json:
    """Lines over time from 0 on; ``most`` is the axis' end, ``limit`` draws a dashed threshold.

    ``dashed`` is a regular expression of legends that are drawn as dashes: limits and promises.
    """
    custom: Json = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 0, "showPoints": "auto", "insertNulls": GAP}
    defaults: Json = {"unit": unit, "min": 0, "custom": custom}
    if most is not None:
        defaults["max"] = most
    if limit is not None:
        custom["thresholdsStyle"] = {"mode": "dashed"}
        defaults["thresholds"] = steps("transparent", (limit, RED))
    dashes = {"custom.lineStyle": {"fill": "dash", "dash": [8, 6]}}
    told = [{**override("", dashes), "matcher": {"id": "byRegexp", "options": dashed}}] if dashed else []
    return _series(title, text, targets, width, fields(defaults, told))


def shares(
    title: str,
    text: str,
    *targets: Json,
    width: int = 8,
    parts: Parts | None = None,
    beside: bool = False,
) -> Json:
    """Parts of a whole, stacked to 100 %. ``beside``: the legend is long, and stands on the right."""
    custom: Json = {"drawStyle": "line", "lineWidth": 0, "fillOpacity": 75, "insertNulls": GAP,
                    "stacking": {"mode": "percent", "group": "A"}}  # fmt: skip
    defaults: Json = {"unit": "percentunit", "min": 0, "max": 1, "custom": custom}
    drawn = _series(title, text, targets, width, fields(defaults, _named(parts)))
    if beside:
        drawn["options"]["legend"]["placement"] = "right"
    return drawn


def stacked(title: str, text: str, *targets: Json, unit: str, width: int = 8, parts: Parts | None = None) -> Json:
    """Amounts that add up."""
    custom: Json = {"drawStyle": "line", "lineWidth": 0, "fillOpacity": 60, "insertNulls": GAP,
                    "stacking": {"mode": "normal", "group": "A"}}  # fmt: skip
    config = fields({"unit": unit, "min": 0, "custom": custom}, _named(parts))
    return _series(title, text, targets, width, config)


def _named(parts: Parts | None) -> list[Json]:
    return [
        override(legend, {"displayName": name, "color": {"mode": "fixed", "fixedColor": color}})
        for legend, (name, color) in (parts or {}).items()
    ]


def _series(title: str, text: str, targets: Iterable[Json], width: int, config: Json) -> Json:
    tooltip: Json = {"mode": "multi", "sort": "desc"}
    legend: Json = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
    drawn = panel("timeseries", title, text, targets, width, 8)
    return {**drawn, "fieldConfig": config, "options": {"tooltip": tooltip, "legend": legend}}


def timeline(title: str, text: str, *targets: Json, words: Words, width: int = 24, height: int = 8) -> Json:
    """A bar per series in the colour of its state. A gap stays a gap."""
    defaults: Json = {
        "unit": "none",
        "custom": {"fillOpacity": 85, "lineWidth": 0, "insertNulls": GAP, "spanNulls": False},
        "mappings": value_map(words),
        "color": {"mode": "fixed", "fixedColor": BLUE},
    }
    options: Json = {
        "mergeValues": True,
        "showValue": "auto",
        "alignValue": "left",
        "rowHeight": 0.8,
        "legend": {"showLegend": False, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
    }
    drawn = panel("state-timeline", title, text, targets, width, height)
    return {**drawn, "fieldConfig": fields(defaults), "options": options}


def heatmap(title: str, text: str, target: Json, *, width: int = 8) -> Json:
    """How many observations fell into which bucket when; the more, the further from the ground's colour."""
    options: Json = {
        "calculate": False,
        "yAxis": {"unit": "s", "axisPlacement": "left"},
        "rowsFrame": {"layout": "le"},
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": BLUE, "reverse": False},
        "cellGap": 1,
        "filterValues": {"le": 1e-9},
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": False},
        "legend": {"show": True},
        "exemplars": {"color": RED},
        "showValue": "never",
    }
    drawn = panel("heatmap", title, text, [target], width, 8)
    config = fields({"unit": "reqps", "custom": {"scaleDistribution": {"type": "linear"}}})
    return {**drawn, "fieldConfig": config, "options": options}


def stat(
    title: str,
    text: str,
    target: Json,
    *,
    unit: str = "short",
    bad_from: float | None = None,
    words: Words | None = None,
    width: int = 4,
    height: int = 4,
) -> Json:
    """One number, and whether it is bad news: red from ``bad_from`` on. With ``words``, one word a series."""
    colours = steps(BLUE) if bad_from is None else steps(GREEN, (bad_from, RED))
    defaults: Json = {"unit": unit, "thresholds": colours}
    if words:
        defaults |= {"mappings": value_map(words), "color": {"mode": "fixed", "fixedColor": BLUE}}
    options: Json = {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background" if words else "value",  # a dark class is no legible word on a dark ground
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "auto",
        "orientation": "auto",
    }
    drawn = panel("stat", title, text, [target], width, height)
    return {**drawn, "fieldConfig": fields(defaults), "options": options}


def bars(title: str, text: str, target: Json, *, unit: str, width: int = 8, most: float | None = None,
         parts: Parts | None = None) -> Json:  # fmt: skip
    """A horizontal bar a series, of the newest value."""
    defaults: Json = {"unit": unit, "min": 0, "thresholds": steps(BLUE), "color": {"mode": "thresholds"}}
    if most is not None:
        defaults["max"] = most
    options: Json = {
        "displayMode": "basic",
        "orientation": "horizontal",
        "valueMode": "color",
        "showUnfilled": True,
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
    }
    drawn = panel("bargauge", title, text, [target], width, 8)
    return {**drawn, "fieldConfig": fields(defaults, _named(parts)), "options": options}


def empty_means(why: str, drawn: Json) -> Json:
    """``drawn`` that says ``why`` where it would say "No data", and in its description too."""
    config = drawn["fieldConfig"]
    defaults = {**config["defaults"], "noValue": why}
    described = f"{drawn['description']} Empty: {why}."
    return {**drawn, "description": described, "fieldConfig": fields(defaults, config["overrides"])}
