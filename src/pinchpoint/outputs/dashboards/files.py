"""The dashboards as files."""

import json

from pinchpoint.outputs.dashboards.overview import OVERVIEW


def dashboard_files() -> dict[str, str]:
    """Each dashboard's file name and JSON, always the same for the same code."""
    return {f"{OVERVIEW['uid']}.json": json.dumps(OVERVIEW, indent=2, ensure_ascii=False) + "\n"}
