"""A world to play: one service, what it runs on, who asks, and what is wrong. Values; a seed makes each a single run.

Everything that a counterfactual relaxes is a field here, so that a more generous world is this one with another value.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.node.workload import Workload
from pinchpoint.snapshot import Slo, ThrottleReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """CPUs under the engines. ``quota_cores`` is a cgroup's limit on all of them together; ``None``: none.

    ``step_seconds`` of an engine core's work stand between two steps, and ``request_seconds`` more for each request in
    them; ``admission_seconds`` of a front end's work (tokenizing, templates, images) come before a request is queued,
    on one of ``frontend_cores``. ``other_cores`` are busy with something else.
    """

    cpu_count: int = 64
    quota_cores: float | None = None
    step_seconds: float = 0.0011
    request_seconds: float = 9e-6
    admission_seconds: float = 0.004
    frontend_cores: int = 1
    other_cores: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """What lies between client and engine. ``delay_seconds`` on the way in; ``buffers``: the answer comes whole."""

    delay_seconds: float = 0.002
    jitter_seconds: float = 0.001
    buffers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How the balancer spreads requests over the replicas.

    ``weights`` is each replica's share where the policy is ``weighted`` (a router that hashes users or sessions);
    ``least_loaded`` sends each to the replica with the fewest requests; ``round_robin`` takes turns.
    """

    policy: str = "least_loaded"
    weights: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """A card (by its index) that runs at ``clock_ratio`` of its boost clock from ``at`` on, and says why."""

    gpu: str
    clock_ratio: float
    at: float = 0.0
    temperature_celsius: float = 91.0
    reasons: tuple[ThrottleReason, ...] = (ThrottleReason.HW_SLOWDOWN, ThrottleReason.HW_THERMAL_SLOWDOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """A neighbour process on a card, whose memory grows until the card is full; then the engine dies of it."""

    gpu: str
    bytes_per_second: float
    begins_with_bytes: float = 5e8


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """A replica that stops stepping between two moments: its queue grows, its gauges freeze."""

    replica: int
    at: float
    until: float = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCard:
    """A card falls off the bus. Its engine stands still from then on."""

    gpu: str
    at: float


Fault = Throttle | Leak | Stall | LostCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """Our own requests: one through the gateway each ``every_seconds``, one to a hosted API beside it; 0: none."""

    every_seconds: float = 15.0
    prompt_tokens: int = 40
    output_tokens: int = 32
    hosted_ttft_seconds: float = 0.4
    hosted_tpot_seconds: float = 0.013


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """``engine`` is the first replica; the others are the same on cards of their own, numbered on from its last.

    ``asleep``: the engines have been put to sleep, and nobody asks.
    """

    seed: int
    engine: EngineSpec
    workload: Workload
    replicas: int = 1
    slo: Slo = field(default_factory=Slo)
    host: Host = field(default_factory=Host)
    gateway: Gateway = field(default_factory=Gateway)
    routing: Routing = field(default_factory=Routing)
    faults: tuple[Fault, ...] = ()
    probes: Probes = field(default_factory=Probes)
    asleep: bool = False
    story: str = ""
