"""Why a reading is missing: a failure is data with a reason from a closed set."""

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
    """Every cause a source can give for having no reading. A label value, so the set is closed and only grows."""

    NOT_CONFIGURED = "not_configured"
    STARTING = "starting"  # the first reading has not been made yet
    STALE = "stale"  # the last reading is older than its source's staleness limit
    HUNG = "hung"  # a call has not returned within its deadline
    TIMEOUT = "timeout"
    # NVML
    NO_LIBRARY = "no_library"
    NO_DRIVER = "no_driver"
    DRIVER_MISMATCH = "driver_mismatch"
    ACCESS_DENIED = "access_denied"
    GPU_LOST = "gpu_lost"
    RESET_REQUIRED = "reset_required"
    NOT_SUPPORTED = "not_supported"
    NO_DEVICES = "no_devices"
    PAUSED = "paused"  # NVML is shut down on request, so that a GPU can be reset
    DRIVER_ERROR = "driver_error"  # the driver refused for a cause of its own; the next call may work
    REFUSED = "refused"  # the other side answers with an error of its own
    FOREIGN_PIDS = "foreign_pids"  # process ids are the host's, and we live in another PID namespace
    # HTTP, engine
    DNS = "dns"
    CONNECT_REFUSED = "connect_refused"
    TLS = "tls"
    HTTP_STATUS = "http_status"
    UNAUTHORIZED = "unauthorized"
    NOT_EXPOSITION = "not_exposition"  # an answer, but no Prometheus text: HTML, JSON, binary
    TRUNCATED = "truncated"  # the body ended in the middle
    TOO_LARGE = "too_large"
    METRICS_MISSING = "metrics_missing"  # an exposition without the engine's families (statistics off, wrong port)
    WRONG_KIND = "wrong_kind"  # an engine's exposition, and not of the kind that was configured
    ENGINE_DEAD = "engine_dead"  # /metrics still answers, /health says the engine is gone
    NOT_ENABLED = "not_enabled"  # the engine has it, switched off by its configuration
    NOT_EXPOSED = "not_exposed"  # this kind of engine has no such metric
    # any
    UNREADABLE = "unreadable"  # a file that is not there, or that we may not read
    INVALID = "invalid"  # a value outside its range
    ERROR = "error"  # a defect of ours; the log has it


@dataclass(frozen=True, slots=True)
class Absence:
    """No reading of ``source`` since ``at``.

    ``source`` names one observed thing (``gpu/3``, ``engine/chat``, ``host``). ``detail`` is one short line for people
    (never a label value): it names the thing, the cause and the remedy, and holds no secret.
    """

    source: str
    reason: Reason
    detail: str
    at: float
