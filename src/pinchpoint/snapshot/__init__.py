"""The VALUES that every other room passes around: what was observed, when, and why something was not.

A reading is frozen and carries its own time. A field is ``None`` when the source could not say: unknown is never 0 and
never NaN. Times (``at``) are seconds on one monotonic clock chosen by the caller (in a replay: seconds since the first
scrape); nothing here reads a clock. Units are in the names; ratios run from 0 to 1.

Is not: a place for decisions, formatting or I/O. Imports nothing of the project.
"""

from pinchpoint.snapshot.absence import Absence, Reason
from pinchpoint.snapshot.alerts import AlertingReport, AlertmanagerReport, AlertReport
from pinchpoint.snapshot.comparison import LAST_PROBES, ProbeComparison, ProbeMedians, compared
from pinchpoint.snapshot.engine import EngineFacts, EngineReading, Slo
from pinchpoint.snapshot.engine_process import EngineProcess
from pinchpoint.snapshot.frontend import FrontendReading
from pinchpoint.snapshot.gpu import GpuReading, GpuState, PeerLink, ThrottleReason
from pinchpoint.snapshot.gpu_parts import NVLINK_FAMILIES, GpuPod, GpuProcess, MigInstance, NvLink, XidCount
from pinchpoint.snapshot.histogram import Histogram, Quantile
from pinchpoint.snapshot.host import EngineHost, HostReading
from pinchpoint.snapshot.model_family import are_kin, model_family
from pinchpoint.snapshot.nvml_calls import NvmlCall, NvmlCalls, StuckCall
from pinchpoint.snapshot.ownership import gpus_of_process_tree
from pinchpoint.snapshot.probe import PROBE_PHASES, Placement, ProbeLiveness, ProbeOutcome, ProbeReading, ProbeSkip
from pinchpoint.snapshot.probe_totals import ProbeSpend, ProbeTotals
from pinchpoint.snapshot.replica import ReplicaReading
from pinchpoint.snapshot.self_report import DiscoveryReport, JobReport, SelfReport, SourceReport
from pinchpoint.snapshot.target import EngineTarget, HttpAccess
from pinchpoint.snapshot.tick import Snapshot
from pinchpoint.snapshot.window import Window

__all__ = [
    "LAST_PROBES",
    "NVLINK_FAMILIES",
    "PROBE_PHASES",
    "Absence",
    "AlertReport",
    "AlertingReport",
    "AlertmanagerReport",
    "DiscoveryReport",
    "EngineFacts",
    "EngineHost",
    "EngineProcess",
    "EngineReading",
    "EngineTarget",
    "FrontendReading",
    "GpuPod",
    "GpuProcess",
    "GpuReading",
    "GpuState",
    "Histogram",
    "HostReading",
    "HttpAccess",
    "JobReport",
    "MigInstance",
    "NvLink",
    "NvmlCall",
    "NvmlCalls",
    "PeerLink",
    "Placement",
    "ProbeComparison",
    "ProbeLiveness",
    "ProbeMedians",
    "ProbeOutcome",
    "ProbeReading",
    "ProbeSkip",
    "ProbeSpend",
    "ProbeTotals",
    "Quantile",
    "Reason",
    "ReplicaReading",
    "SelfReport",
    "Slo",
    "Snapshot",
    "SourceReport",
    "StuckCall",
    "ThrottleReason",
    "Window",
    "XidCount",
    "are_kin",
    "compared",
    "gpus_of_process_tree",
    "model_family",
]
