"""/metrics as bytes: the metric table applied to one scene, in text 0.0.4 and OpenMetrics 1.0; or as samples.

Is not: the place that names a metric (``catalog``), nor a server (``web``).
"""

from pinchpoint.outputs.exposition.renderer import Renderer
from pinchpoint.outputs.exposition.samples import SeriesSample, samples_of

__all__ = ["Renderer", "SeriesSample", "samples_of"]
