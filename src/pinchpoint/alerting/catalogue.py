"""The alerts, by topic. Add one in its topic's file, with its promtool cases and its runbook in ``alerts/``, then run
``pinchpoint rules alerts``."""

from collections.abc import Mapping

from pinchpoint.alerting.alert import Alert
from pinchpoint.alerting.engine_alerts import ENGINE_ALERTS
from pinchpoint.alerting.gpu_alerts import GPU_ALERTS
from pinchpoint.alerting.gpu_health_alerts import GPU_HEALTH_ALERTS
from pinchpoint.alerting.kv_alerts import KV_ALERTS
from pinchpoint.alerting.own_alerts import OWN_ALERTS
from pinchpoint.alerting.probe_alerts import HOSTED_ALERTS, PROBE_ALERTS
from pinchpoint.alerting.slo_alerts import SLO_ALERTS

TOPICS: Mapping[str, tuple[Alert, ...]] = {  # each a group of the rule file
    "pinchpoint-kv-cache": KV_ALERTS,
    "pinchpoint-slo": SLO_ALERTS,
    "pinchpoint-engine": ENGINE_ALERTS,
    "pinchpoint-probes": PROBE_ALERTS,
    "pinchpoint-hosted": HOSTED_ALERTS,
    "pinchpoint-gpu": GPU_ALERTS,
    "pinchpoint-gpu-health": GPU_HEALTH_ALERTS,
    "pinchpoint-self": OWN_ALERTS,
}
ALERTS: tuple[Alert, ...] = tuple(alert for alerts in TOPICS.values() for alert in alerts)
