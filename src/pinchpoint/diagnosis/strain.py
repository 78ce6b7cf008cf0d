"""Does anyone suffer? Objectives that are missed, and a queue that will miss them.

A class is the answer to "why is it slow", so without strain there is no question: the engine is healthy.
"""

from dataclasses import dataclass

from pinchpoint.diagnosis.judgement import count, duration, fact, gathered, percent, ramp
from pinchpoint.diagnosis.rates import ratio
from pinchpoint.diagnosis.signals import Signals, found_once
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Evidence, Objective


@dataclass(frozen=True, slots=True, kw_only=True)
class Strain:
    """``queue`` is how much the queue hurts (0..1); the others are the facts, ``None`` when met or unknown."""

    queue: float
    waiting: Evidence | None
    ttft: Evidence | None
    inter_token: Evidence | None
    nearly: float = 0.0  # how near tokens are to the objective that they meet (0..1)

    @property
    def first_token(self) -> float:
        """How much requests suffer before their first token (0..1)."""
        return 1.0 if self.ttft else self.queue

    @property
    def suffering(self) -> float:
        """How much requests suffer by anything (0..1); at most 0.35, so that it is no more than told, where their
        tokens are just on time."""
        return max(self.first_token, float(self.inter_token is not None), 0.35 * self.nearly)

    @property
    def first_token_alone(self) -> bool:
        """Whether first tokens are late, and neither a queue nor the pace of tokens is why."""
        return self.ttft is not None and self.inter_token is None and self.queue < 0.5

    @property
    def any(self) -> bool:
        return self.queue >= 1.0 or self.ttft is not None or self.inter_token is not None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        return gathered(self.waiting, self.ttft, self.inter_token)


@found_once
def strain_of(signals: Signals, thresholds: Thresholds) -> Strain:
    """Weighs queue, TTFT and inter-token latency against the engine's objectives."""
    load = signals.load
    queue = _queue(signals, thresholds)
    waiting = None
    if queue > 0 and load.requests_waiting is not None:
        text = f"{count(load.requests_waiting)} requests waiting, in {percent(load.queue_share or 0)} of the scrapes"
        if load.queue_wait_seconds is not None:
            text += f"; a new one waits about {duration(load.queue_wait_seconds)}"
        waiting = Evidence(
            signal="requests_waiting", text=text, value=load.requests_waiting, threshold=thresholds.queue_share
        )
    return Strain(
        queue=queue,
        waiting=waiting,
        ttft=_missed(signals.ttft, "ttft_judged_seconds", "TTFT"),
        inter_token=_missed(signals.inter_token, "inter_token_mean_seconds", "time between tokens"),
        nearly=ramp(ratio(signals.inter_token.judged_seconds, signals.slo.tpot_seconds), 0.7, 1.0),
    )


def _queue(signals: Signals, thresholds: Thresholds) -> float:
    """Sustained, and longer than the TTFT objective bears. How long it takes decides, not how many wait: ten that start
    within 100 ms hurt nobody. When no rate of starts is known, sustained is enough."""
    load = signals.load
    sustained = ramp(load.queue_share, thresholds.queue_share / 2, thresholds.queue_share)
    if load.queue_wait_seconds is None:
        return sustained
    bearable = thresholds.queue_wait_share * signals.slo.ttft_seconds
    return sustained * ramp(load.queue_wait_seconds, bearable / 2, bearable)


def _missed(objective: Objective, signal: str, what: str) -> Evidence | None:
    text = f"{what} {objective.judged_by} {{value}}, objective {{threshold}}"
    judged = objective.judged_seconds if objective.missed else None
    return fact(signal, judged, text, duration, objective.slo_seconds)
