"""The alerts of a KV cache: nearly full, full with somebody waiting for it, full soon."""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

# Above it somebody is paged; the status page and the dashboard draw their line there.
KV_CACHE_HIGH_RATIO = 0.9
_USAGE = "pinchpoint_engine_kv_cache_usage_ratio"
_HIGH = f"{_USAGE} > {KV_CACHE_HIGH_RATIO:.2f}"
_VARIABLES = ("job", "instance", "engine")

KV_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointKVCacheHigh",
        expr=_HIGH,
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
        why=(
            "A burst is soon all that is needed for a queue. Five minutes: an engine may fill its cache for a moment "
            "and work it off; the same to end, so that a gauge that hovers at the threshold is one page."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointKVCacheSaturated",
        expr=(
            f"{_HIGH}\n"
            "and (\n"
            "  avg_over_time(pinchpoint_engine_requests_waiting[5m]) >= 1\n"
            "  or increase(pinchpoint_engine_preemptions_total[5m]) >= 1\n"
            ")"
        ),
        for_seconds=120,
        keep_firing_for_seconds=300,
        severity=Severity.CRITICAL,
        summary="The KV cache of an inference engine is full and requests wait for it.",
        description=(
            "Engine {{ $labels.engine }} (replica {{ $labels.replica }}) holds {{ $value | humanizePercentage }} of "
            "its KV-cache blocks, and for 2 minutes requests have waited or been preempted: users feel it. Shed or "
            "spread load now; then fewer sequences at once, FP8 KV cache, more GPU memory for the cache, and only "
            "then a replica."
        ),
        why=(
            "A full cache hurts when somebody waits for it: on average one request over five minutes, which a queue "
            "that empties between two scrapes does not hide, or one preemption. Two minutes, for the harm is there."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointKVCacheFilling",
        expr=f"predict_linear({_USAGE}[15m], 1800) > 0.95\nand {_USAGE} > 0.7",
        for_seconds=600,
        keep_firing_for_seconds=300,
        severity=Severity.WARNING,
        summary="The KV cache of an inference engine will be full within half an hour.",
        description=(
            "At the pace of the last 15 minutes engine {{ $labels.engine }} (replica {{ $labels.replica }}) will need "
            "{{ $value | humanizePercentage }} of its KV-cache blocks in half an hour. See what grows (requests, or "
            "tokens per request), and shed batch work or add a replica before requests wait."
        ),
        why=(
            "Half an hour is what it takes to start a replica without haste. From 70 % on: below it a straight line "
            "through a quarter of an hour is no forecast; and it must hold for ten minutes, which a cache that fills "
            "after a restart does not."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
)
