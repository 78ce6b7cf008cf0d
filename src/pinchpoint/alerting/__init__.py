"""DECIDE, pure: which conditions a human is told of, and how urgently.

``catalogue`` holds the alerts; ``rules_file`` writes them as Prometheus rules. Is not: a sender, nor a second rule
engine: Prometheus evaluates the rules and Alertmanager delivers.
"""

from pinchpoint.alerting.alert import DASHBOARD, RUNBOOKS, Alert, Severity
from pinchpoint.alerting.catalogue import ALERTS, KV_CACHE_HIGH_RATIO
from pinchpoint.alerting.rules_file import rules_file

__all__ = ["ALERTS", "DASHBOARD", "KV_CACHE_HIGH_RATIO", "RUNBOOKS", "Alert", "Severity", "rules_file"]
