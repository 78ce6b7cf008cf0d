"""Everything that was ever probed, summed up: what a counter or a histogram on /metrics shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pinchpoint.snapshot.histogram import Histogram
from pinchpoint.snapshot.probe import Placement, ProbeOutcome, ProbeReading

# OpenTelemetry's server buckets, widened: long prompts pass 10 s TTFT, fast hosted models stay under 10 ms TPOT.
TTFT_BOUNDS = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2, 2.5, 5, 7.5, 10, 15, 30, 60, float("inf"))
TPOT_BOUNDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.5, 1, 2.5, float("inf"))
DURATION_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, float("inf"))
PHASE_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, float("inf"))


def _observe(into: Histogram | None, bounds: tuple[float, ...], value: float | None) -> Histogram | None:
    if value is None:
        return into
    before = into if into is not None else Histogram(bounds, (0.0,) * len(bounds), 0.0, 0.0)
    counts = tuple(count + (value <= bound) for bound, count in zip(bounds, before.counts, strict=True))
    return Histogram(bounds, counts, before.sum + value, before.count + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSpend:
    """What a hosted target's probes have cost since the daemon started, and what is left of their caps.

    ``usd_total`` is ``None`` where the operator gave no price. ``remaining_…`` by period, ``day`` and ``month`` of UTC;
    one without a cap is not there, and none is while the ledger can't be read.
    """

    tokens_total: int = 0
    usd_total: float | None = None
    remaining_tokens: Mapping[str, int] = field(default_factory=dict)
    remaining_usd: Mapping[str, float] = field(default_factory=dict)

    def paid(self, tokens: int, usd: float | None) -> ProbeSpend:
        """With one more bill."""
        money = None if usd is None or self.usd_total is None else self.usd_total + usd
        return replace(self, tokens_total=self.tokens_total + tokens, usd_total=money)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeTotals:
    """Totals of one target since the daemon started. ``failures_total`` holds only the reasons that have happened.

    ``spend`` is ``None`` for a local target, which costs nothing; ``endpoint_up`` is whether the API answered the last
    free request, ``None`` where none is sent.
    """

    target: str
    placement: Placement
    requests_total: int = 0
    consecutive_failures: int = 0  # up to the last probe
    last_failure: ProbeOutcome | None = None  # why the last probe failed; None where it did not
    failures_total: Mapping[ProbeOutcome, int] = field(default_factory=dict)
    skipped_total: Mapping[str, int] = field(default_factory=dict)  # by ProbeSkip
    tokens_total: Mapping[str, int] = field(default_factory=dict)  # by kind: prompt, completion, cached
    discarded_total: Mapping[str, int] = field(default_factory=dict)  # by signal: ttft, ttfc, tpot
    ttft_seconds: Histogram | None = None
    tpot_seconds: Histogram | None = None
    inter_chunk_seconds: Histogram | None = None
    duration_seconds: Histogram | None = None
    phase_seconds: Mapping[str, Histogram] = field(default_factory=dict)
    spend: ProbeSpend | None = None
    endpoint_up: bool | None = None

    def after(self, reading: ProbeReading) -> ProbeTotals:
        """These totals with one more probe. Latencies count only where the probe defined them."""
        failed = reading.outcome is not ProbeOutcome.OK
        failures = dict(self.failures_total)
        if failed:
            failures[reading.outcome] = failures.get(reading.outcome, 0) + 1
        tokens = dict(self.tokens_total)
        for kind in ("prompt", "completion", "cached"):
            number = getattr(reading, f"{kind}_tokens")
            if number is not None:
                tokens[kind] = tokens.get(kind, 0) + number
        phases = dict(self.phase_seconds)
        for phase, seconds in reading.phases.items():
            observed = _observe(phases.get(phase), PHASE_BOUNDS, seconds)
            if observed is not None and phase != reading.unfinished_phase:
                phases[phase] = observed
        discarded = dict(self.discarded_total)
        for signal in reading.discarded:
            discarded[signal] = discarded.get(signal, 0) + 1
        inter_chunk = self.inter_chunk_seconds
        for seconds in reading.chunk_gaps_seconds:
            inter_chunk = _observe(inter_chunk, TPOT_BOUNDS, seconds)
        return replace(
            self,
            requests_total=self.requests_total + 1,
            consecutive_failures=self.consecutive_failures + 1 if failed else 0,
            last_failure=reading.outcome if failed else None,
            failures_total=failures,
            tokens_total=tokens,
            discarded_total=discarded,
            ttft_seconds=_observe(self.ttft_seconds, TTFT_BOUNDS, reading.ttft_seconds),
            tpot_seconds=_observe(self.tpot_seconds, TPOT_BOUNDS, reading.tpot_seconds),
            inter_chunk_seconds=inter_chunk,
            duration_seconds=_observe(self.duration_seconds, DURATION_BOUNDS, reading.duration_seconds),
            phase_seconds=phases,
        )

    def skipped(self, cause: str) -> ProbeTotals:
        """These totals with one more probe that was not sent."""
        return replace(self, skipped_total={**self.skipped_total, cause: self.skipped_total.get(cause, 0) + 1})
