"""DECIDE, pure: which conditions a human is told of, and how urgently.

``catalogue`` holds the alerts, ``recording`` the recording rules; ``rules_file`` writes both for Prometheus,
``documents`` for people.
"""

from pinchpoint.alerting.alert import RUNBOOKS, Alert, Dashboard, Severity
from pinchpoint.alerting.catalogue import ALERTS, TOPICS
from pinchpoint.alerting.documents import alerts_table, runbook_skeleton
from pinchpoint.alerting.kv_alerts import KV_CACHE_HIGH_RATIO
from pinchpoint.alerting.recording import RECORDINGS, Recording
from pinchpoint.alerting.rules_file import Links, prometheus_rule, recording_rules_file, rules_file

__all__ = [
    "ALERTS",
    "KV_CACHE_HIGH_RATIO",
    "RECORDINGS",
    "RUNBOOKS",
    "TOPICS",
    "Alert",
    "Dashboard",
    "Links",
    "Recording",
    "Severity",
    "alerts_table",
    "prometheus_rule",
    "recording_rules_file",
    "rules_file",
    "runbook_skeleton",
]
