"""healthy: requests run, and nobody suffers.

Claims: TTFT (p95, or the mean of few) and the mean time between tokens are within the objectives, no queue lasts, no
request is preempted steadily (unless both objectives are known and met all the same), and our own probes, which go the
clients' way, are answered in time too. Supports: all five known. Contradicted by any strain, and by harm on the way. A
KV cache at 95 % with nothing waiting is healthy: it is memory in use. Fallback: with the latency histograms missing the
score is lower and says so, and so it is without probes, for then the clients' side is unseen; with the queue unknown
too, it abstains. Near an objective it is less sure: a part of the requests is beyond it already. Advice: none.
"""

from pinchpoint.diagnosis.clients import harm_of, is_seen
from pinchpoint.diagnosis.judgement import Judgement, count, duration, fact, gathered, missing_of, percent
from pinchpoint.diagnosis.quiet import nobody_asks
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.strain import strain_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence, Objective

_NEAR = 0.8  # of an objective: bursts of a few seconds are beyond it
_NEAR_TRUST = 0.75


def healthy(signals: Signals, thresholds: Thresholds) -> Judgement:
    load, latency = signals.load, signals.latency
    strain = strain_of(signals, thresholds)
    preempting = (load.preemptions_per_second or 0.0) >= thresholds.preemptions_per_second and not _met_for_certain(
        signals
    )
    if load.moved is False or nobody_asks(signals, thresholds):  # stuck, or idle
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=0.0)
    if strain.any or preempting:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=0.0, contradicted_by=strain.evidence)
    harm = harm_of(signals, thresholds)
    if (harm.degree or 0.0) >= thresholds.name_score:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=0.0, contradicted_by=harm.evidence)
    missing = missing_of(
        requests_waiting=load.requests_waiting,
        ttft_judged_seconds=latency.ttft_judged_seconds,
        inter_token_mean_seconds=latency.inter_token_mean_seconds,
        own_probes=1.0 if is_seen(signals) else None,
    )
    if load.requests_waiting is None and latency.ttft_judged_seconds is None:
        return Judgement(bottleneck=Bottleneck.HEALTHY, score=None, missing=missing)
    near = gathered(
        _near(signals.ttft, "ttft_judged_seconds", "TTFT"),
        _near(signals.inter_token, "inter_token_mean_seconds", "time between tokens"),
    )
    return Judgement(
        bottleneck=Bottleneck.HEALTHY,
        score=(1.0 - 0.15 * len(missing)) * (_NEAR_TRUST if near else 1.0),
        why=_why(signals),
        evidence=lambda: _evidence(signals, thresholds),
        contradicted_by=near,
        missing=missing,
        gate=True,
    )


def _met_for_certain(signals: Signals) -> bool:
    """Both objectives are known and met: preemption then costs no promise."""
    told = (signals.ttft, signals.inter_token)
    return all(o.judged_seconds is not None and not o.missed for o in told)


def _evidence(signals: Signals, thresholds: Thresholds) -> tuple[Evidence, ...]:
    load, full = signals.load, (signals.load.kv_cache_usage_ratio or 0.0) >= thresholds.kv_full_ratio
    return gathered(
        _met(signals.ttft, "ttft_judged_seconds", "TTFT"),
        _met(signals.inter_token, "inter_token_mean_seconds", "time between tokens"),
        *_at_the_client(signals),
        fact("requests_waiting", load.requests_waiting, "{value} requests waiting", count),
        fact(
            "kv_cache_usage_ratio",
            load.kv_cache_usage_ratio,
            "KV cache at {value}: full, but nobody waits for room" if full else "KV cache at {value}",
            percent,
        ),
    )


def _at_the_client(signals: Signals) -> tuple[Evidence, ...]:
    way, slo = signals.way, signals.slo
    if way is None or not is_seen(signals):
        return ()
    ttft, tpot = way.probe_client_ttft_seconds, way.probe_client_tpot_seconds
    pace = "{value} a token at the client, objective {threshold}"
    return gathered(
        fact(
            "probe_client_ttft_seconds",
            ttft,
            "our probes wait {value} for their first token, objective {threshold}",
            duration,
            slo.ttft_seconds,
        ),
        fact("probe_client_tpot_seconds", tpot, pace, duration, slo.tpot_seconds),
    )


def _near(objective: Objective, signal: str, what: str) -> Evidence | None:
    """The latency that is nearly too long, or of which only a lower edge is known."""
    judged, slo = objective.judged_seconds, objective.slo_seconds
    if judged is None or (judged < _NEAR * slo and not objective.judged_by.endswith("at least")):
        return None
    return fact(signal, judged, f"{what} {objective.judged_by} {{value}} is near {{threshold}}", duration, slo)


def _met(objective: Objective, signal: str, what: str) -> Evidence | None:
    text = f"{what} {objective.judged_by} {{value}} within {{threshold}}"
    return fact(signal, objective.judged_seconds, text, duration, objective.slo_seconds)


def _why(signals: Signals) -> str:
    """Without figures: it stays the same sentence while they move."""
    measured = {"first tokens": signals.ttft, "the tokens after them": signals.inter_token}
    met = [what for what, objective in measured.items() if objective.judged_seconds is not None]
    on_time = f"{' and '.join(met)} come on time" if met else ""
    queue = "" if signals.load.requests_waiting is None else "no queue lasts"
    return ", and ".join(filter(None, (on_time, queue)))
