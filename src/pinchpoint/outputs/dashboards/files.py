"""The dashboards as files."""

import json

from pinchpoint.outputs.dashboards.capacity import CAPACITY
from pinchpoint.outputs.dashboards.engine import ENGINE_DASHBOARD
from pinchpoint.outputs.dashboards.fleet import FLEET
from pinchpoint.outputs.dashboards.gpu import GPU_DASHBOARD
from pinchpoint.outputs.dashboards.own import OWN

DASHBOARDS = (FLEET, ENGINE_DASHBOARD, GPU_DASHBOARD, CAPACITY, OWN)


def dashboard_files() -> dict[str, str]:
    """Each dashboard's file name and JSON, always the same for the same code."""
    return {f"{each['uid']}.json": json.dumps(each, indent=2, ensure_ascii=False) + "\n" for each in DASHBOARDS}
