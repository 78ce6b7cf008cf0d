"""What a played world was worth to its clients: requests that were answered as promised, and how long they took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

from pinchpoint.simulator.node.client import Sent
from pinchpoint.simulator.node.service import Service, play
from pinchpoint.simulator.world import World
from pinchpoint.snapshot import Slo

WARM_UP_SECONDS, SECONDS = 30.0, 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of one window, all as the clients measured it.

    ``goodput`` is requests a second that ended in the window with TTFT and mean TPOT within the objectives. Clients
    that wait for an answer ask a quicker engine more often, which is no promise kept: of those it is ``in_slo_share``.

    ``in_slo_share`` is theirs of all whose fate was sealed in it: answered, or open and late beyond repair; 1 when
    nobody asked. Latencies of what is still open are those so far. TTFT is the p95, TPOT the mean.
    """

    goodput: float
    in_slo_share: float
    ttft_p95_seconds: float = 0.0
    tpot_seconds: float = 0.0

    def excess(self, slo: Slo) -> float:
        """The worse of the two latencies over its objective; above 1 an objective is missed."""
        return max(self.ttft_p95_seconds / slo.ttft_seconds, self.tpot_seconds / slo.tpot_seconds)


@dataclass(frozen=True, slots=True)
class _Fate:
    in_slo: bool
    ttft_seconds: float
    tpot_seconds: float | None


def outcome_of(world: World, seconds: float = SECONDS, warm_up_seconds: float = WARM_UP_SECONDS) -> Outcome:
    """Plays the world; what happens in the warm-up is not judged."""
    return outcome(play(world, seconds, warm_up_seconds), seconds)


def outcome(service: Service, seconds: float) -> Outcome:
    """Of the last ``seconds`` that were played."""
    slo, now = service.world.slo, service.now
    found = [_fate(sent, slo, now - seconds, now) for sent in service.sent]
    fates = [fate for fate in found if fate is not None]
    good = sum(fate.in_slo for fate in fates)
    share = good / len(fates) if fates else 1.0
    tpots = [fate.tpot_seconds for fate in fates if fate.tpot_seconds is not None]
    ttfts = [fate.ttft_seconds for fate in fates]
    return Outcome(
        goodput=share if service.world.workload.clients else good / seconds,
        in_slo_share=share,
        ttft_p95_seconds=_p95(ttfts),
        tpot_seconds=fmean(tpots) if tpots else 0.0,
    )


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else sum(values)


def _fate(sent: Sent, slo: Slo, begins: float, now: float) -> _Fate | None:
    """``None`` where it was sealed before the window, or is still open and may end well."""
    ttft, finished = sent.ttft_seconds, sent.finished_at
    if finished is not None and finished <= now:
        if finished < begins or ttft is None:
            return None
        tpot = sent.tpot_seconds
        return _Fate(ttft <= slo.ttft_seconds and (tpot is None or tpot <= slo.tpot_seconds), ttft, tpot)
    if sent.refused:
        return (
            _Fate(in_slo=False, ttft_seconds=now - sent.sent_at, tpot_seconds=None) if sent.sent_at > begins else None
        )
    waited = now - sent.sent_at
    if ttft is None or ttft > waited:
        return _Fate(in_slo=False, ttft_seconds=waited, tpot_seconds=None) if waited > slo.ttft_seconds else None
    # Even if it ended now, its mean time a token would be above the objective.
    tokens = max(1, sent.request.output_tokens - 1)
    if (waited - ttft) / tokens > slo.tpot_seconds:
        return _Fate(in_slo=False, ttft_seconds=ttft, tpot_seconds=(waited - ttft) / tokens)
    return None
