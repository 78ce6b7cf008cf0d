"""The alerts of an engine: it can't be read, it stands still, it is one-sided, it lives in a bottleneck."""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

_VARIABLES = ("job", "instance", "engine")
_NOT_PINCHED = "unknown|no_data|idle|healthy|sleeping"
_SPENT = "pinchpoint_bottleneck_class_seconds_total"
_WITHOUT_STATISTICS = 'pinchpoint_engine_unavailable{reason=~"metrics_missing|not_exposition|wrong_kind"} == 1'

ENGINE_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointEngineDown",
        expr=f"pinchpoint_engine_up == 0\nunless on (job, instance, engine) ({_WITHOUT_STATISTICS})",
        for_seconds=120,
        severity=Severity.CRITICAL,
        summary="An inference engine can't be read.",
        description=(
            "Engine {{ $labels.engine }} has given no usable metrics for 2 minutes, so nothing watches its KV cache. "
            "pinchpoint_engine_unavailable tells the reason; see whether the server runs and answers /health, and "
            "restart it if not."
        ),
        why=(
            "Two minutes: a restart of the server's process is shorter, loading a large model is not, and then nobody "
            "is served. One that answers without statistics is PinchpointEngineStatsMissing instead."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointEngineStatsMissing",
        expr=_WITHOUT_STATISTICS,
        for_seconds=300,
        severity=Severity.WARNING,
        summary="An inference engine answers without the statistics by which it is watched.",
        description=(
            "Engine {{ $labels.engine }} has answered for 5 minutes, but what it says is {{ $labels.reason }}: no "
            "alert of its KV cache, queue or latency can fire. Was it restarted with its statistics switched off, or "
            "is the port that of something else?"
        ),
        why="Users may be served well, so nobody gets up. Five minutes: an engine that starts tells little at first.",
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointEngineStalled",
        expr='pinchpoint_bottleneck{class="stalled"} == 1',
        for_seconds=60,
        keep_firing_for_seconds=120,
        severity=Severity.CRITICAL,
        summary="An inference engine has requests and makes no token.",
        description=(
            "Engine {{ $labels.engine }} has had requests for a minute and its token counters stand still. Its "
            "/metrics may look well. Save its log and a stack dump (py-spy), look for an Xid or NCCL timeout, then "
            "restart it."
        ),
        why=(
            "The diagnosis says so after 15 s without a token, of one replica or all. A minute more, for a long "
            "prompt on a slow card makes no token either."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointReplicasImbalanced",
        expr=f'increase({_SPENT}{{class="imbalance"}}[15m]) > 600',
        for_seconds=300,
        keep_firing_for_seconds=900,
        severity=Severity.WARNING,
        summary="One replica of an engine has too much to do while another has room.",
        description=(
            "Engine {{ $labels.engine }} spent {{ $value | humanizeDuration }} of the last 15 minutes with a queue on "
            "one data-parallel replica and room on another. Balance by load (least connections, or the engine's own "
            "balancer), not by turns, hashes or fixed weights. More GPUs do not help."
        ),
        why="Two thirds of a quarter of an hour: requests of uneven length make every balancer one-sided for moments.",
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointGPUMemoryGrowing",
        expr='pinchpoint_bottleneck{class="memory_growth"} == 1',
        for_seconds=300,
        keep_firing_for_seconds=600,
        severity=Severity.WARNING,
        summary="The memory in use on an engine's GPU grows and will be full within half an hour.",
        description=(
            "A card of engine {{ $labels.engine }} will be full within half an hour at the pace at which its memory "
            "grows; the engine then dies of CUDA out of memory. Find the process that grows (nvidia-smi, "
            "pinchpoint_gpu_process_memory_bytes) and restart it at a quiet moment, rather than have it die at a loud "
            "one."
        ),
        why="The forecast is the diagnosis' own, beyond noise. Five minutes, for one allocation is no growth.",
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
    Alert(
        name="PinchpointBottleneckPersistent",
        # Time spent, rather than an average of samples: a gap in the data adds nothing.
        expr=f'increase({_SPENT}{{class!~"{_NOT_PINCHED}"}}[30m]) > 1440',
        for_seconds=300,
        keep_firing_for_seconds=900,
        severity=Severity.INFO,
        summary="An engine has had the same bottleneck for most of half an hour.",
        description=(
            "Engine {{ $labels.engine }} spent {{ $value | humanizeDuration }} of the last 30 minutes in class "
            "{{ $labels.class }}. This is no burst: follow the advice of the status page (pinchpoint_advice)."
        ),
        why="24 of 30 minutes, whatever lies between: what comes and goes is the load, what stays is the sizing.",
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=_VARIABLES,
    ),
)
