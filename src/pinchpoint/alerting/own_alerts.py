"""The alerts of pinchpoint itself, and of the way from it to a human."""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

# Those of engines and probes have alerts of their own.
_OWN_SOURCES = 'source!~"(engine|probe)/.+"'

OWN_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointSourceStale",
        expr=(
            f"time() - pinchpoint_source_last_success_timestamp_seconds{{{_OWN_SOURCES}}} > 300\n"
            "unless on (job, instance) pinchpoint_gpu_paused == 1"
        ),
        for_seconds=300,
        severity=Severity.WARNING,
        summary="pinchpoint no longer reads one of its sources.",
        description=(
            "Source {{ $labels.source }} of {{ $labels.instance }} gave its last reading "
            "{{ $value | humanizeDuration }} ago: what it tells is absent, and its alerts can't fire. "
            "pinchpoint_metric_unavailable has the reason, the log a line from when it began."
        ),
        why=(
            "Five minutes are many times the interval of every source, and five more are a restart of what it asks. "
            "One that never was read is none: a node without a GPU has no GPU to miss."
        ),
        dashboard_uid=Dashboard.SELF,
        panel_variables=("job", "instance"),
    ),
    Alert(
        name="PinchpointEventLoopLagging",
        expr="avg_over_time(pinchpoint_event_loop_lag_seconds[5m]) > 0.1",
        for_seconds=600,
        severity=Severity.WARNING,
        summary="pinchpoint's event loop is late, so latencies that it measures are dropped.",
        description=(
            "The event loop of {{ $labels.instance }} has been late by {{ $value | humanizeDuration }} on average for "
            "10 minutes. Probes drop what they can't time well, and readings age. Give the daemon CPU (its quota, or a "
            "busy node), or watch fewer engines here (shards)."
        ),
        why="A tenth of a second is ten times what a probe bears before it drops its timing.",
        dashboard_uid=Dashboard.SELF,
        panel_variables=("job", "instance"),
    ),
    Alert(
        name="PinchpointConfigReloadFailed",
        expr="pinchpoint_config_last_reload_successful == 0",
        for_seconds=600,
        severity=Severity.WARNING,
        summary="pinchpoint runs with an old configuration.",
        description=(
            "The last reload on {{ $labels.instance }} was refused 10 minutes ago and the old configuration is still "
            "in use. Run pinchpoint check-config on the file, mend what it names, reload again."
        ),
        why="Ten minutes, for whoever edits the file tries again. A restart would not come up with it.",
        dashboard_uid=Dashboard.SELF,
        panel_variables=("job", "instance"),
    ),
    Alert(
        name="PinchpointDeliveryFailing",
        expr="pinchpoint_alertmanager_up == 0",
        for_seconds=600,
        severity=Severity.WARNING,
        summary="An Alertmanager does not take the alerts that pinchpoint sends it.",
        description=(
            "For 10 minutes Alertmanager {{ $labels.alertmanager }} has not taken what {{ $labels.instance }} sends. "
            "Where it is the only one, nobody is paged for this node. The reason is in "
            "pinchpoint_alertmanager_notifications_failed_total: address, credentials, certificate, or the "
            "Alertmanager itself."
        ),
        why=(
            "Ten minutes are an upgrade of an Alertmanager: it is told everything anew when it is back. A warning, for "
            "the others are told meanwhile."
        ),
        dashboard_uid=Dashboard.SELF,
        panel_variables=("job", "instance"),
    ),
    Alert(
        name="PinchpointTargetAbsent",
        # A daemon that is down, or one that nobody scrapes. Not both at once for the same cause.
        expr=(
            'up{job=~".*pinchpoint.*"} == 0\n'
            'or (absent(pinchpoint_build_info) unless on () (up{job=~".*pinchpoint.*"} == 0))'
        ),
        for_seconds=300,
        severity=Severity.CRITICAL,
        summary="pinchpoint is not scraped, so no other alert can fire.",
        description=(
            "For 5 minutes Prometheus has had no data from pinchpoint {{ $labels.instance }}: no page for a full KV "
            "cache or a lost GPU would come. See whether the daemon runs, and whether Prometheus has it as a target."
        ),
        why="Who watches must be watched. Five minutes are an upgrade of the daemon.",
        dashboard_uid=Dashboard.SELF,
        needs_outside_view=True,
    ),
    Alert(
        name="PinchpointWatchdog",
        expr="vector(1)",
        severity=Severity.NONE,
        summary="The way from Prometheus to you works.",
        description=(
            "This alert always fires. Route it to a service that calls you when it stops: then Prometheus or "
            "Alertmanager is broken and no page would come."
        ),
        why="It always fires.",
        dashboard_uid=Dashboard.SELF,
    ),
)
