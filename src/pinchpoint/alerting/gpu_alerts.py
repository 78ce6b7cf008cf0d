"""The alerts of GPUs that are there or not, are held back, or are linked worse than they could be."""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

_GPU = ("job", "instance", "gpu")
_CARD = "GPU {{ $labels.gpu }} ({{ $labels.uuid }}) on {{ $labels.instance }}"
_LINKS_UP = "sum by (job, instance, gpu, uuid) (pinchpoint_gpu_nvlink_up)"
_SLOWED = "More than a fifth of five minutes, as the driver's own clock counts it: the flag flickers between scrapes."


def _held_back(reason: str) -> str:
    return f'rate(pinchpoint_gpu_throttle_seconds_total{{reason="{reason}"}}[5m]) > 0.2'


GPU_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointGPULost",
        expr="pinchpoint_gpu_up == 0",
        for_seconds=60,
        severity=Severity.CRITICAL,
        summary="A GPU does not answer.",
        description=(
            f"{_CARD} has not answered for a minute. pinchpoint_gpu_state tells whether it is lost, hung or needs a "
            "reset. Take its engine out of service, read the kernel log for Xid lines, then reset the GPU or drain "
            "the node."
        ),
        why="A minute is many readings. A GPU that answers no more seldom comes back by itself.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointEngineGPULost",
        # An engine that died with its GPU says no more which were its own: for a quarter of an hour it is remembered.
        expr=(
            "max by (job, instance, engine, gpu) (last_over_time(pinchpoint_engine_gpu_info[15m]))\n"
            "and on (job, instance, gpu) pinchpoint_gpu_up == 0"
        ),
        for_seconds=60,
        keep_firing_for_seconds=1800,
        severity=Severity.INFO,
        summary="An engine has lost one of its GPUs.",
        description=(
            "GPU {{ $labels.gpu }} of engine {{ $labels.engine }} does not answer: whatever else is told of this "
            "engine follows from that. PinchpointGPULost is the page; take the engine out of rotation first."
        ),
        why=(
            "It names the engine that a lost GPU belongs to, so that Alertmanager can silence the engine's symptoms "
            "and no other engine's. Kept for half an hour, for by then the engine has died too."
        ),
        dashboard_uid=Dashboard.ENGINE,
        panel_variables=("job", "instance", "engine"),
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
        why="A card that fell off the bus may be gone from every list. Two minutes, for a driver may be loading.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=("job", "instance"),
    ),
    Alert(
        name="PinchpointGPUThermalSlowdown",
        expr=_held_back("hw_thermal_slowdown"),
        for_seconds=300,
        keep_firing_for_seconds=300,
        severity=Severity.WARNING,
        summary="A GPU is so hot that its hardware holds its clocks down.",
        description=(
            f"{_CARD} was slowed down by heat for {{{{ $value | humanizePercentage }}}} of the last 5 minutes. Mend "
            "the cooling before you tune the engine: fans, air flow, inlet temperature, a neighbour that blows into "
            "it. Until then give this card less to do."
        ),
        why=f"{_SLOWED} Clocks fall to a half and less, and with tensor parallelism the group waits for this card.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUPowerBrake",
        expr=_held_back("hw_power_brake"),
        for_seconds=300,
        keep_firing_for_seconds=300,
        severity=Severity.WARNING,
        summary="The server's power supply holds a GPU's clocks down.",
        description=(
            f"{_CARD} was slowed down by the power brake for {{{{ $value | humanizePercentage }}}} of the last 5 "
            "minutes: the server, not the card, says that power is short. Look at the power supplies (one may have "
            "failed), their cables and the rack's limit before you tune the engine."
        ),
        why=f"{_SLOWED} It is an emergency signal of the server, and everyday life nowhere.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUPCIeDegraded",
        # A unified-memory GPU has no slot to judge.
        expr=(
            "pinchpoint_gpu_pcie_link_width < pinchpoint_gpu_pcie_link_width_max\n"
            'unless on (job, instance, uuid) pinchpoint_gpu_info{memory_model="unified"}'
        ),
        for_seconds=600,
        severity=Severity.WARNING,
        summary="A GPU's PCIe link has fewer lanes than card and slot can do.",
        description=(
            f"{_CARD} has run on {{{{ $value }}}} PCIe lanes for 10 minutes, fewer than it can. Loading weights and "
            "tensor parallelism without NVLink are slower by as much. Reseat the card or its riser, and look for PCIe "
            "errors in the kernel log."
        ),
        why="The width, not the generation, which falls whenever a GPU idles. Ten minutes, for nothing gets worse.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUNVLinkDegraded",
        expr=(
            f"{_LINKS_UP} > 0\nand {_LINKS_UP} < on (job, instance) group_left () max by (job, instance) ({_LINKS_UP})"
        ),
        for_seconds=600,
        severity=Severity.WARNING,
        summary="A GPU has fewer NVLinks up than its neighbours.",
        description=(
            f"{_CARD} has had {{{{ $value }}}} NVLinks up for 10 minutes, and another card of the node has more. "
            "Tensor parallelism waits for the slowest pair. Look for Xid 74 in the kernel log, reset the GPUs of the "
            "node together; when it returns, it is a cable, a bridge or a switch."
        ),
        why=(
            "Measured by the neighbours, for a card does not say how many links it was sold with; one without any is "
            "not bridged, and no fault."
        ),
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUPaused",
        expr="pinchpoint_gpu_paused == 1",
        for_seconds=3600,
        severity=Severity.WARNING,
        summary="Somebody had pinchpoint let go of the GPUs, and nobody had it take them again.",
        description=(
            "For an hour no GPU of {{ $labels.instance }} has been watched: it was paused so that one could be reset. "
            "No page for a lost GPU would come. When the work is done: pinchpoint gpu resume."
        ),
        why="An hour is longer than a reset, and shorter than a forgotten one should last.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=("job", "instance"),
    ),
)
