"""What a diagnosis says: the classes, the evidence, the answer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pinchpoint.snapshot import Quantile


class Bottleneck(StrEnum):
    """Every class an engine can be in. The codes (``CODES``) are exported and only ever appended to."""

    UNKNOWN = "unknown"
    NO_DATA = "no_data"
    IDLE = "idle"
    HEALTHY = "healthy"
    KV_CAPACITY = "kv_capacity"
    COMPUTE = "compute"
    MEMORY_BANDWIDTH = "memory_bandwidth"
    SCHEDULER = "scheduler"
    HOST_CPU = "host_cpu"
    INTERCONNECT = "interconnect"
    NETWORK = "network"
    HARDWARE = "hardware"
    IMBALANCE = "imbalance"
    MEMORY_GROWTH = "memory_growth"
    STALLED = "stalled"
    SLEEPING = "sleeping"


CODES: Mapping[Bottleneck, int] = {bottleneck: code for code, bottleneck in enumerate(Bottleneck)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One fact that speaks for the verdict, in words and as a number.

    ``signal`` is the name of the signal (``kv_cache_usage_ratio``); ``text`` a short sentence with the value in human
    units, e.g. "KV cache at 97 % of its blocks, threshold 90 %".
    """

    signal: str
    text: str
    value: float | None = None
    threshold: float | None = None

    @property
    def out_of_one(self) -> bool:
        """Whether value and threshold are both known and of 1, as a bar shows them; a share of an objective is not."""
        return (
            self.signal.endswith(("_ratio", "_share"))
            and 0 <= (-1 if self.value is None else self.value) <= 1
            and 0 < (self.threshold or 0) <= 1
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One lever. ``action`` is a label value (``fp8_kv_cache``), ``text`` is for people. The cheapest comes first.

    ``reason`` is why here, with this engine's own numbers; ``effect`` what to expect of it, as far as arithmetic tells;
    ``flag`` what to start the engine with, in the words of its own kind; ``risk`` what may go wrong.
    """

    action: str
    text: str
    reason: str | None = None
    effect: str | None = None
    flag: str | None = None
    risk: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """One latency against what the service promised, as the verdict sees it: what it judges is what is shown.

    ``judged_seconds`` is the ``judged_by`` (``p95``, or ``mean`` of few observations) that is held against
    ``slo_seconds``; ``None`` when nothing was observed. The quantiles are of the same observations.
    """

    slo_seconds: float
    judged_seconds: float | None = None
    judged_by: str = "mean"
    p50: Quantile | None = None
    p95: Quantile | None = None

    @property
    def missed(self) -> bool:
        return self.judged_seconds is not None and self.judged_seconds > self.slo_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer for one engine at one moment.

    ``why`` is one sentence for a tired person. ``scores`` holds each class that was weighed, 0..1, comparable.
    ``missing`` names the signals that would have decided, or sharpened, the answer. ``signals`` is what was measured
    (name -> value), for the export of ``diagnosis_signal``. ``collecting``: the answer is unknown because the first
    scrapes are still on their way; nothing is wrong.
    """

    engine: str
    at: float
    bottleneck: Bottleneck
    why: str
    confidence_ratio: float
    runner_up: Bottleneck | None = None
    scores: Mapping[Bottleneck, float] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    contradicted_by: tuple[Evidence, ...] = ()  # what lowered the score of the class, or ruled out the others
    missing: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)
    ttft: Objective | None = None
    inter_token: Objective | None = None  # against the TPOT objective
    collecting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A class that was shown from ``since`` on, until nobody looked any more: a gap or a restart at ``until``."""

    bottleneck: Bottleneck
    since: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A diagnosis after hysteresis: what is shown, exported and paged on.

    ``diagnosis.bottleneck`` is the class that holds since ``since``; ``candidate`` a different class that has been seen
    since ``candidate_since`` and has not lasted long enough to take over. ``contested_since``: since when the held
    class itself has not been seen. ``earlier``: what was shown before a gap, until there is a verdict after it.
    """

    diagnosis: Diagnosis
    since: float
    candidate: Bottleneck | None = None
    candidate_since: float | None = None
    contested_since: float | None = None
    earlier: Shown | None = None
