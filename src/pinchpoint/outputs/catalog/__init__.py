"""THE metric table: every metric that pinchpoint exports, one row each, one file per family.

Nothing else in the code names a metric that it exports. A new metric from a reading that exists is one row here. Is
not: a renderer (``exposition``), nor a place that keeps values: every sample is taken anew from the scene.
"""

from pinchpoint.outputs.catalog.alerting import ALERTING_METRICS
from pinchpoint.outputs.catalog.diagnosis import DIAGNOSIS_METRICS
from pinchpoint.outputs.catalog.discovery import DISCOVERY_METRICS
from pinchpoint.outputs.catalog.engine import ENGINE_METRICS
from pinchpoint.outputs.catalog.engine_kv import ENGINE_KV_METRICS
from pinchpoint.outputs.catalog.engine_slo import ENGINE_SLO_METRICS
from pinchpoint.outputs.catalog.engine_work import ENGINE_WORK_METRICS
from pinchpoint.outputs.catalog.gpu import GPU_METRICS
from pinchpoint.outputs.catalog.gpu_health import GPU_HEALTH_METRICS
from pinchpoint.outputs.catalog.gpu_parts import GPU_PARTS_METRICS
from pinchpoint.outputs.catalog.host import HOST_METRICS
from pinchpoint.outputs.catalog.metric import PREFIX, Each, Kind, Metric, Sample
from pinchpoint.outputs.catalog.nvml import NVML_METRICS
from pinchpoint.outputs.catalog.own import OWN_METRICS
from pinchpoint.outputs.catalog.probe import PROBE_METRICS

CATALOG: tuple[Metric, ...] = (
    *OWN_METRICS,
    *ALERTING_METRICS,
    *DISCOVERY_METRICS,
    *DIAGNOSIS_METRICS,
    *ENGINE_METRICS,
    *ENGINE_SLO_METRICS,
    *ENGINE_WORK_METRICS,
    *ENGINE_KV_METRICS,
    *PROBE_METRICS,
    *GPU_METRICS,
    *GPU_HEALTH_METRICS,
    *GPU_PARTS_METRICS,
    *NVML_METRICS,
    *HOST_METRICS,
)

__all__ = ["CATALOG", "PREFIX", "Each", "Kind", "Metric", "Sample"]
