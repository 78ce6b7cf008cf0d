"""Alerts to every member of an Alertmanager cluster, for sites where no Prometheus evaluates the rules.

Is not: a notifier (who is called is Alertmanager's to know), a judge of what fires (``alerting``), nor a log of events:
a member that was away is told what is so now.
"""

from pinchpoint.outputs.alertmanager.delivery import Delivery
from pinchpoint.outputs.alertmanager.notice import Notice, Notices
from pinchpoint.outputs.alertmanager.settings import AlertmanagerSettings

__all__ = ["AlertmanagerSettings", "Delivery", "Notice", "Notices"]
