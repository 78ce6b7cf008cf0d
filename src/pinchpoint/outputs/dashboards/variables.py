"""The choices at the top of a dashboard."""

from pinchpoint.outputs.dashboards.panel import DATASOURCE, MATCHERS, Json

_ALL: Json = {"selected": True, "text": ["All"], "value": ["$__all"]}


def datasource() -> Json:
    """Which Prometheus. Provisioned dashboards know no inputs, so it is a variable."""
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "current": {}}


def choice(name: str, label: str, query: str, all_value: str | None = ".+", regex: str = "") -> Json:
    """Some or all values of a label; the list is read anew when the time range changes.

    All is ``all_value``; ``None``: whatever the list holds, so that another choice can narrow it.
    """
    variable: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "definition": query,
        "query": {"query": query, "refId": name},
        "regex": regex,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "current": _ALL,
    }
    return variable if all_value is None else {**variable, "allValue": all_value}


def number(name: str, label: str, value: str) -> Json:
    """A number to type in."""
    current = {"selected": True, "text": value, "value": value}
    return {"name": name, "label": label, "type": "textbox", "query": value, "current": current}


JOB = choice("job", "Job", "label_values(pinchpoint_build_info, job)")
INSTANCE = choice("instance", "Instance", 'label_values(pinchpoint_build_info{job=~"$job"}, instance)')
# .* and not .+: the model of an engine that never answered is not known, and it belongs to All.
MODEL = choice("model", "Model", f"label_values(pinchpoint_engine_info{{{MATCHERS}}}, model)", ".*")
# The engines of the chosen models, and those that never told theirs: an engine that is down must not vanish.
ENGINE = choice(
    "engine",
    "Engine",
    f"query_result(max by (engine) (last_over_time(pinchpoint_engine_up{{{MATCHERS}}}[$__range]) unless on (job, "
    f'instance, engine) last_over_time(pinchpoint_engine_info{{{MATCHERS}, model!~"$model"}}[$__range])))',
    None,
    '/engine="([^"]+)"/',
)
GPU = choice("gpu", "GPU", f"label_values(pinchpoint_gpu_up{{{MATCHERS}}}, gpu)")
