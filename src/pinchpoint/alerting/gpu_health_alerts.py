"""The alerts of a GPU's errors. They look at what is so now: an increase misses a count that begins with its event."""

from pinchpoint.alerting.alert import Alert, Dashboard, Severity

# NVIDIA's Xid catalogue. 48 double-bit ECC, 62 microcontroller halt, 64 row remapper failure, 74 NVLink, 79 fallen off
# the bus, 95 uncontained memory error, 119 and 120 GSP. Errors of programs (13, 31, 43, 45) are nobody's page.
CRITICAL_XIDS = ("48", "62", "64", "74", "79", "95", "119", "120")
WARNING_XIDS = ("92", "94")  # many corrected errors; a contained memory error
XID_NEWS_SECONDS = 1800  # the counter never falls: an Xid is news for as long, and its consequences have own alerts

_GPU = ("job", "instance", "gpu")
_CARD = "GPU {{ $labels.gpu }} ({{ $labels.uuid }}) on {{ $labels.instance }}"
_NEWS = "At once, for half an hour: what it leaves behind has alerts of its own."


def _recent(xids: tuple[str, ...]) -> str:
    last = f'pinchpoint_gpu_xid_last_timestamp_seconds{{xid=~"{"|".join(xids)}"}}'
    return f"time() - max without (source) ({last}) < {XID_NEWS_SECONDS}"


GPU_HEALTH_ALERTS: tuple[Alert, ...] = (
    Alert(
        name="PinchpointXid",
        expr=_recent(CRITICAL_XIDS),
        severity=Severity.CRITICAL,
        summary="A GPU had an error that it does not recover from by itself.",
        description=(
            f"{_CARD} had Xid {{{{ $labels.xid }}}} {{{{ $value | humanizeDuration }}}} ago. Take its engine out of "
            "rotation, read the kernel log around it, then reset the GPU or drain the node; the runbook says which by "
            "the code."
        ),
        why=f"The codes after which NVIDIA's Xid catalogue asks for a reset or a repair. {_NEWS}",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointXidMemory",
        expr=_recent(WARNING_XIDS),
        severity=Severity.WARNING,
        summary="A GPU had a memory error that cost at most the program it hit.",
        description=(
            f"{_CARD} had Xid {{{{ $labels.xid }}}} {{{{ $value | humanizeDuration }}}} ago. See that its engine was "
            "started again, and reset the GPU at the next occasion so that the memory is repaired; replace it when "
            "this returns."
        ),
        why=f"92: corrected errors in a burst; 94: an error that was contained. {_NEWS}",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUMemoryErrors",
        expr='pinchpoint_gpu_ecc_errors_total{severity="uncorrectable"} > 0',
        severity=Severity.WARNING,
        summary="A GPU's memory has errors that ECC can't correct.",
        description=(
            f"{_CARD} has had {{{{ $value }}}} uncorrectable memory errors since its driver was loaded. Whatever ran "
            "on it then may have crashed. Reset the GPU at the next occasion, so that the rows are remapped; replace "
            "it when this returns."
        ),
        why="One is one too many. The count itself, as it may be there at the first scrape; a reset clears it.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPURowRemapFailure",
        expr='pinchpoint_gpu_remapped_rows{kind="failure"} > 0',
        severity=Severity.CRITICAL,
        summary="A GPU has bad memory and no spare rows left to replace it.",
        description=(
            f"{_CARD} could not remap a bad row of memory: the next error there kills what runs on it. Move its "
            "engine to another GPU now and have the card replaced; a reset does not help."
        ),
        why="NVIDIA's ground for a replacement (RMA).",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUMemoryRepairPending",
        expr=('pinchpoint_gpu_remapped_rows{kind="pending"} > 0\nor pinchpoint_gpu_retired_pages{cause="pending"} > 0'),
        severity=Severity.WARNING,
        summary="A GPU's bad memory is replaced at its next reset.",
        description=(
            f"{_CARD} has found bad memory and waits for a reset to replace it. Until then the error may return. Stop "
            "what uses the GPU at the next occasion, let pinchpoint go of it (pinchpoint gpu pause), then nvidia-smi "
            "--gpu-reset."
        ),
        why="It is 0 or 1, and stays until the reset.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPURecoveryNeeded",
        expr='pinchpoint_gpu_recovery_action{action!~"none|drain_.*"} == 1',
        for_seconds=60,
        severity=Severity.CRITICAL,
        summary="The driver says that a GPU must be recovered before it can be used.",
        description=(
            f"The driver asks for {{{{ $labels.action }}}} of {_CARD}, for a minute by now. The GPU may still look "
            "healthy. Take its engine out of rotation, then do what the driver asks for."
        ),
        why="A minute, for somebody may be at it.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
    Alert(
        name="PinchpointGPUDrainAdvised",
        expr='pinchpoint_gpu_recovery_action{action=~"drain_.*"} == 1',
        for_seconds=60,
        severity=Severity.WARNING,
        summary="The driver says that a GPU should be drained and then recovered.",
        description=(
            f"The driver asks for {{{{ $labels.action }}}} of {_CARD}, for a minute by now. What runs goes on, with "
            "less capacity: let its work end, put no new work on it, then reset it."
        ),
        why="What runs goes on, so it is work for today.",
        dashboard_uid=Dashboard.GPU,
        panel_variables=_GPU,
    ),
)
