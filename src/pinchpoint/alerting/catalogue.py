"""The alerts. Add one here, its runbook and its promtool test in ``alerts/``, then run ``pinchpoint rules alerts``."""

from pinchpoint.alerting.alert import Alert, Severity
from pinchpoint.alerting.gpu_alerts import GPU_HEALTH_ALERTS
from pinchpoint.alerting.probe_alert import PROBE_FAILING

# Above it somebody is paged; the status page and the dashboard draw their line there.
KV_CACHE_HIGH_RATIO = 0.9
_NOT_PINCHED = "unknown|no_data|idle|healthy|sleeping"

ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointKVCacheHigh",
        expr=f"pinchpoint_engine_kv_cache_usage_ratio > {KV_CACHE_HIGH_RATIO:.2f}",
        # Five minutes: an engine may fill its cache for a moment and work it off. The same to end, so that a gauge
        # that hovers at the threshold is one page.
        for_seconds=300,
        keep_firing_for_seconds=300,
        severity=Severity.CRITICAL,
        summary="The KV cache of an inference engine is nearly full.",
        description=(
            "Engine {{ $labels.engine }} (replica {{ $labels.replica }}) has held {{ $value | humanizePercentage }} of "
            f"its KV-cache blocks for 5 minutes; the threshold is {100 * KV_CACHE_HIGH_RATIO:.0f} %. If requests wait "
            "or are preempted (class kv_capacity), shed or spread load now, then give the cache more room (FP8 KV "
            "cache, more GPU memory for it) or add a replica. If nothing waits, no action tonight: there is no room "
            "for a burst, so plan capacity."
        ),
        panel_variables=("instance", "engine"),
    ),
    Alert(
        name="PinchpointEngineDown",
        expr="pinchpoint_engine_up == 0",
        for_seconds=120,
        severity=Severity.CRITICAL,
        summary="An inference engine can't be read.",
        description=(
            "Engine {{ $labels.engine }} has given no usable metrics for 2 minutes, so nothing watches its KV cache. "
            "pinchpoint_metric_unavailable tells the reason; see whether the server runs and answers /health, and "
            "restart it if not."
        ),
        panel_variables=("instance", "engine"),
    ),
    Alert(
        name="PinchpointGPULost",
        expr="pinchpoint_gpu_up == 0",
        for_seconds=60,
        severity=Severity.CRITICAL,
        summary="A GPU does not answer.",
        description=(
            "GPU {{ $labels.gpu }} ({{ $labels.uuid }}) on {{ $labels.instance }} has not answered for a minute. "
            "pinchpoint_gpu_state tells whether it is lost, hung or needs a reset. Take its engine out of service, "
            "read the kernel log for Xid lines, then reset the GPU or drain the node."
        ),
        panel_variables=("instance",),
    ),
    Alert(
        name="PinchpointGPUsMissing",
        # A lost GPU may vanish altogether, and then gpu_up says nothing.
        expr="pinchpoint_gpus_visible < pinchpoint_gpus_expected",
        for_seconds=120,
        severity=Severity.CRITICAL,
        summary="A node shows fewer GPUs than it should.",
        description=(
            "The driver on {{ $labels.instance }} shows only {{ $value }} GPUs, fewer than expected, for 2 minutes. "
            "Compare nvidia-smi -L with the node's inventory; read the kernel log for Xid 79, then drain the node."
        ),
        panel_variables=("instance",),
    ),
    Alert(
        name="PinchpointGPUHardwareSlowdown",
        expr='pinchpoint_gpu_throttle_active{reason=~"hw_thermal_slowdown|hw_power_brake"} == 1',
        for_seconds=300,
        keep_firing_for_seconds=300,
        severity=Severity.WARNING,
        summary="The hardware holds a GPU's clocks down.",
        description=(
            "GPU {{ $labels.gpu }} on {{ $labels.instance }} has been slowed down by {{ $labels.reason }} for 5 "
            "minutes. Mend cooling or power before you tune the engine: check fans, air flow and power supplies."
        ),
        panel_variables=("instance",),
    ),
    *GPU_HEALTH_ALERTS,
    PROBE_FAILING,
    Alert(
        name="PinchpointBottleneckPersistent",
        # Time spent, rather than an average of samples: a gap in the data adds nothing.
        expr=f'increase(pinchpoint_bottleneck_class_seconds_total{{class!~"{_NOT_PINCHED}"}}[30m]) > 1440',
        for_seconds=300,
        keep_firing_for_seconds=900,
        severity=Severity.INFO,
        summary="An engine has had the same bottleneck for most of half an hour.",
        description=(
            "Engine {{ $labels.engine }} spent {{ $value | humanizeDuration }} of the last 30 minutes in class "
            "{{ $labels.class }}. This is no burst: follow the advice of the status page (pinchpoint_advice)."
        ),
        panel_variables=("instance", "engine"),
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
        panel_variables=("instance",),
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
    ),
)
