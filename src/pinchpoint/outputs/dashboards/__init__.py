"""The Grafana dashboards, written in Python and kept as JSON in ``grafana/dashboards``.

Queries name only pinchpoint's own metrics: what an engine calls a thing is the engine source's affair. Is not: a
client of Grafana; its provisioning reads the files.
"""

from pinchpoint.outputs.dashboards.files import dashboard_files

__all__ = ["dashboard_files"]
