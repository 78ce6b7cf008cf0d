"""/metrics as bytes: the metric table applied to one scene, in text 0.0.4 and OpenMetrics 1.0.

Is not: the place that names a metric (``catalog``), nor a server (``web``).
"""

from pinchpoint.outputs.exposition.renderer import Renderer

__all__ = ["Renderer"]
