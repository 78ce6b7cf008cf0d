"""pinchpoint with the shipped alerts, which wait seconds in place of minutes: ``-m tests.fakes.quick_alerts run``.

As the end-to-end tests do with the shipped rule file, for nobody has half an hour for a test.
"""

from dataclasses import replace

from pinchpoint import cli
from pinchpoint.alerting import ALERTS
from pinchpoint.daemon import alarming, evaluating

WAIT_SECONDS = 2
WARM_UP_SECONDS = 6.0

if __name__ == "__main__":
    alarming.ALERTS = tuple(
        replace(
            alert,
            for_seconds=min(alert.for_seconds, WAIT_SECONDS),
            keep_firing_for_seconds=min(alert.keep_firing_for_seconds, WAIT_SECONDS),
        )
        for alert in ALERTS
    )
    evaluating.WARM_UP_SECONDS = WARM_UP_SECONDS
    cli.main()
