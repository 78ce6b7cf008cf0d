"""What a Prometheus, or what answers like one (VictoriaMetrics, Mimir, Thanos), knows of the past.

Is not: a scraper, nor a writer.
"""

from pinchpoint.sources.prometheus.history import PrometheusHistory, QueryError
from pinchpoint.sources.prometheus.settings import PrometheusSettings

__all__ = ["PrometheusHistory", "PrometheusSettings", "QueryError"]
