"""The choices at the top of a dashboard, and what is marked on every panel."""

from pinchpoint.outputs.dashboards.panel import DATASOURCE, RED, SKY, Json


def datasource() -> Json:
    """Which Prometheus. Provisioned dashboards know no inputs, so it is a variable."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def choice(name: str, label: str, query: str) -> Json:
    """Some or all values of a label; all is ``.+``, and the list is read anew when the time range changes."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


FIRING = 'ALERTS{alertname=~"Pinchpoint.+", alertname!="PinchpointWatchdog", alertstate="firing"}'
VARIABLES = [
    datasource(),
    choice("job", "Job", "label_values(pinchpoint_build_info, job)"),
    choice("instance", "Instance", 'label_values(pinchpoint_build_info{job=~"$job"}, instance)'),
    choice("engine", "Engine", 'label_values(pinchpoint_engine_up{job=~"$job", instance=~"$instance"}, engine)'),
]


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


ANNOTATIONS = [
    _marks("Alerts", RED, FIRING, "{{alertname}} {{engine}}{{gpu}}"),
    _marks("Daemon restarts", SKY,
           'changes(process_start_time_seconds{job=~"$job", instance=~"$instance"}[1m]) > 0', "pinchpoint restarted"),
]  # fmt: skip
