"""What every dashboard has: its name, its choices, links to the others, and marks on every panel."""

from collections.abc import Iterable

from pinchpoint.outputs.dashboards.layout import laid_out
from pinchpoint.outputs.dashboards.looks import ORANGE, RED, SKY
from pinchpoint.outputs.dashboards.panel import DATASOURCE, MATCHERS, Json
from pinchpoint.outputs.dashboards.variables import INSTANCE, JOB, datasource

TAG = "pinchpoint"
FIRING = 'ALERTS{alertname=~"Pinchpoint.+", alertname!="PinchpointWatchdog", alertstate="firing"}'


def dashboard(
    name: str,
    description: str,
    choices: Iterable[Json],
    rows: Iterable[tuple[str, tuple[Json, ...]]],
    *,
    since: str = "now-1h",
    refresh: str = "30s",
) -> Json:
    """``rows`` under the choices of data source, job, instance and ``choices``. Its uid is ``pinchpoint-NAME``."""
    return {
        "uid": f"pinchpoint-{name}",
        "title": f"pinchpoint / {name}",
        "description": description,
        "tags": [TAG],
        "schemaVersion": 39,
        "id": None,
        "editable": False,
        "graphTooltip": 1,
        "refresh": refresh,
        "timezone": "browser",
        "time": {"from": since, "to": "now"},
        "templating": {"list": [datasource(), JOB, INSTANCE, *choices]},
        "annotations": {"list": _ANNOTATIONS},
        "links": [_TO_THE_OTHERS],
        "panels": laid_out(rows),
    }


def path_to(name: str, *labels: str) -> str:
    """A link from a table's row to another dashboard, with the time range and what the row's ``labels`` say."""
    chosen = "".join(f"&var-{label}=${{__data.fields.{label}}}" for label in labels)
    return f"/d/pinchpoint-{name}?${{__url_time_range}}&${{datasource:queryparam}}&${{job:queryparam}}{chosen}"


def _marks(name: str, color: str, expr: str, title: str) -> Json:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "iconColor": color,
        "expr": expr,
        "step": "30s",
        "titleFormat": title,
    }


_ANNOTATIONS = [
    _marks("Alerts", RED, FIRING, "{{alertname}} {{engine}}{{gpu}}{{target}}"),
    # The rate interval, not a fixed one: a step that is longer than the look back would miss most restarts.
    _marks(
        "Engine restarts",
        ORANGE,
        f"sum by (engine) (resets(pinchpoint_engine_prompt_tokens_total{{{MATCHERS}}}[$__rate_interval])) > 0",
        "{{engine}} began anew",
    ),
    _marks(
        "pinchpoint restarts",
        SKY,
        f"changes(process_start_time_seconds{{{MATCHERS}}}[$__rate_interval]) > 0",
        "pinchpoint restarted",
    ),
]
_TO_THE_OTHERS: Json = {
    "type": "dashboards",
    "title": "pinchpoint",
    "icon": "external link",
    "tooltip": "The same time and choices on another dashboard",
    "url": "",
    "tags": [TAG],
    "asDropdown": False,
    "targetBlank": False,
    "keepTime": True,
    "includeVars": True,
}
