"""What the simulator's scenarios, which are about load, never show: a node on which everything is ill or split."""

from collections.abc import Mapping
from dataclasses import replace

from pinchpoint.snapshot import (
    AlertingReport,
    AlertmanagerReport,
    AlertReport,
    DiscoveryReport,
    GpuProcess,
    GpuReading,
    MigInstance,
    NvLink,
    NvmlCalls,
    Reason,
    SelfReport,
    StuckCall,
    XidCount,
)

SICK_NODE = "sick_node"  # the chapter's name
LOST_GPU = "2"
SILENT_ENGINE = "mail-qwen2.5-14b"
_GIB = float(2**30)
_LINKS = tuple(map(str, range(18)))


def ailing(reading: GpuReading, played: float) -> GpuReading:
    """What ``reading`` looks like after ``played`` seconds on the sick node."""
    if not reading.up:
        return replace(reading, xids=(XidCount(xid="79", source="kernel_log", total=1, last_at=reading.at - played),))
    changes: Mapping[str, Mapping[str, object]] = {
        "0": {"nvlinks": tuple(_link(link, played) for link in _LINKS), "pcie_replay_total": 4.0 + played},
        "1": {"processes": (GpuProcess(pid=4242, kind="compute", memory_bytes=71 * _GIB, command="vllm"),)},
        "3": {
            "ecc_errors_total": {"correctable": 90.0 + played, "uncorrectable": float(played > 30)},
            "remapped_rows": {"correctable": 0.0, "uncorrectable": 1.0, "pending": 1.0, "failure": 0.0},
            "recovery_action": "drain_and_reset",
        },
        "5": {"mig_instances": tuple(_instance(number, played) for number in (1, 2, 3))},
    }
    return replace(reading, **changes.get(reading.gpu, {}))


def troubled(report: SelfReport, played: float) -> SelfReport:
    """What the daemon says of itself there: a call that hangs, jobs that fail, rubbish in a list of engines."""
    stuck = StuckCall(gpu=LOST_GPU, call="nvmlDeviceGetPowerUsage", seconds=played)
    failures = round(played / 5)
    return replace(
        report,
        nvml=replace(report.nvml, stuck=(stuck,)) if report.nvml else NvmlCalls(stuck=(stuck,)),
        jobs=tuple(
            replace(job, failures_total=failures, missed_total=failures // 2, skipped_total=failures // 3)
            for job in report.jobs
        ),
        alerting=_deaf_alertmanager(report.started_timestamp_seconds, failures),
        discoveries=(
            DiscoveryReport(discovery="file/fleet", targets=3, refused=1, failures_total={Reason.INVALID: failures}),
        ),
    )


def _deaf_alertmanager(unix: float, failures: int) -> AlertingReport:
    """One member that takes nothing any more."""
    lost = AlertReport(
        alert="PinchpointGPULost",
        severity="critical",
        state="firing",
        labels={"gpu": LOST_GPU},
        value=0.0,
        since_unix_seconds=unix,
        summary="A GPU does not answer.",
        description="",
    )
    member = AlertmanagerReport(
        alertmanager="http://alertmanager:9093",
        up=False,
        notifications_total=40 + failures,
        notifications_failed_total={Reason.TIMEOUT: failures},
        last_success_timestamp_seconds=unix,
        queue_length=1,
    )
    return AlertingReport(
        active=(lost,),
        alertmanagers=(member,),
        evaluation_seconds=0.012,
        evaluation_failures_total=failures,
        last_evaluation_timestamp_seconds=unix,
        refused=1,
    )


def _link(link: str, played: float) -> NvLink:
    down = link == "7"
    return NvLink(link=link, up=not down, errors_total={"crc": 3.0 + played if down else 0.0})


def _instance(number: int, played: float) -> MigInstance:
    return MigInstance(
        uuid=f"MIG-{number}",
        gpu_instance=str(number),
        compute_instance="0",
        profile="2g.20gb",
        memory_total_bytes=20 * _GIB,
        memory_used_bytes=(5 + number + played % 3) * _GIB,
        sm_active_ratio=0.2 * number,
    )
