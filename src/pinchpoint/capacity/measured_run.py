"""A recording in the few figures that tell whether a change was worth it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from pinchpoint.diagnosis.rates import histories, known, mean, observed, observed_mean, rate, ratio, total
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Diagnosis
from pinchpoint.snapshot import (
    EngineFacts,
    EngineReading,
    Histogram,
    Placement,
    Quantile,
    Slo,
    Snapshot,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """One engine from its first request to its last. Means unless named otherwise; ``None`` is unknown.

    ``in_slo_share`` is the smaller of the shares of requests whose first token and whose pace met the objectives: at
    most so many met both. ``in_flight`` are the requests running and waiting.
    """

    bottleneck: Bottleneck
    next_lever: Advice | None = None
    seconds: float = 0.0
    arrivals_per_second: float | None = None
    in_flight: float | None = None
    waiting: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    client_ttft_seconds: float | None = None  # median of our own local probes, which go the clients' way
    ttft_p50_seconds: float | None = None
    ttft_p95_seconds: float | None = None
    tpot_seconds: float | None = None
    output_tokens_per_second: float | None = None
    in_slo_share: float | None = None
    replicas: int = 1
    slo: Slo = field(default_factory=Slo)
    facts: EngineFacts = field(default_factory=EngineFacts)


def measured_run(snapshots: Sequence[Snapshot], engine: str, diagnosis: Diagnosis) -> MeasuredRun | None:
    """The figures of ``engine``; ``None`` where it served nothing."""
    readings = _under_load([r for s in snapshots if (r := s.engine(engine)) is not None])
    if len(readings) < 2:
        return None
    every, newest = histories(readings), readings[-1]
    ttft = observed(every, lambda replica: replica.ttft_seconds)
    pace = observed(every, lambda replica: replica.inter_token_seconds)
    per_request = observed(every, lambda replica: replica.tpot_seconds)
    seconds = newest.at - readings[0].at
    finished = rate(every, lambda replica: total(list(replica.request_success_total.values())))
    output = rate(every, lambda replica: replica.generation_tokens_total)
    waiting = [total([replica.requests_waiting for replica in reading.replicas]) for reading in readings]
    running = [total([replica.requests_running for replica in reading.replicas]) for reading in readings]
    return MeasuredRun(
        bottleneck=diagnosis.bottleneck,
        next_lever=diagnosis.advice[0] if diagnosis.advice else None,
        seconds=seconds,
        arrivals_per_second=_arrivals(ttft, waiting, seconds),
        in_flight=total([mean(running), mean(waiting)]),
        waiting=mean(waiting),
        prompt_tokens=observed_mean(every, lambda replica: replica.request_prompt_tokens)
        or ratio(rate(every, lambda replica: replica.prompt_tokens_total), finished),
        output_tokens=observed_mean(every, lambda replica: replica.request_generation_tokens)
        or ratio(output, finished),
        client_ttft_seconds=_client_ttft(snapshots, engine),
        ttft_p50_seconds=_seconds(ttft.quantile(0.5)) if ttft else None,
        ttft_p95_seconds=_seconds(ttft.quantile(0.95)) if ttft else None,
        tpot_seconds=known((pace or per_request or _NOTHING).mean),
        output_tokens_per_second=output,
        in_slo_share=_in_slo(ttft, per_request, pace, newest.slo),
        replicas=max(len(reading.replicas) for reading in readings),
        slo=newest.slo,
        facts=newest.facts,
    )


_NOTHING = Histogram((float("inf"),), (0.0,), 0.0, 0.0)


def _client_ttft(snapshots: Sequence[Snapshot], engine: str) -> float | None:
    """A probe that names no engine leads to the only one there is."""
    seen = {
        (probe.target, probe.at): probe.ttft_seconds
        for snapshot in snapshots
        for probe in snapshot.probes
        if probe.placement is Placement.LOCAL and probe.engine in (engine, None) and probe.ttft_seconds is not None
    }
    alone = all(name == engine for snapshot in snapshots for name in snapshot.engine_names())
    named = any(snapshot.probes_of(engine) for snapshot in snapshots)
    return median(seen.values()) if seen and (alone or named) else None


def _under_load(readings: Sequence[EngineReading]) -> Sequence[EngineReading]:
    """Each distinct scrape from the one before the first request to the last with one."""
    distinct = list({reading.at: reading for reading in readings}.values())
    busy = [number for number, reading in enumerate(distinct) if _busy(reading)]
    return distinct[max(0, busy[0] - 1) : busy[-1] + 1] if busy else []


def _busy(reading: EngineReading) -> bool:
    counts = (count for r in reading.replicas for count in (r.requests_running, r.requests_waiting))
    return any((count or 0) > 0 for count in counts)


def _arrivals(ttft: Histogram | None, waiting: Sequence[float | None], seconds: float) -> float | None:
    """First tokens, and what the queue grew by."""
    queue = [count for count in waiting if count is not None]
    grown = queue[-1] - queue[0] if queue else 0.0
    return known(max(0.0, ttft.count + grown) / seconds) if ttft and seconds > 0 else None


def _seconds(quantile: Quantile | None) -> float | None:
    """The value, or the edge that is known."""
    if quantile is None:
        return None
    return next((s for s in (quantile.value, quantile.at_most, quantile.at_least) if s is not None), None)


def _in_slo(ttft: Histogram | None, per_request: Histogram | None, pace: Histogram | None, slo: Slo) -> float | None:
    """Where no request's own pace is told, the mean of all stands for it."""
    if per_request is not None:
        paced = known(per_request.share_within(slo.tpot_seconds))
    else:
        met = known(pace.mean) if pace else None
        paced = None if met is None else float(met <= slo.tpot_seconds)
    first = known(ttft.share_within(slo.ttft_seconds)) if ttft else None
    return min((share for share in (first, paced) if share is not None), default=None)
