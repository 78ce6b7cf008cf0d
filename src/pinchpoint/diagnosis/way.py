"""The way between clients and engine: what our own probes saw, against what the engine observed at the same moments."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median_low

from pinchpoint.diagnosis.moments import waiting_of
from pinchpoint.diagnosis.rates import histories, known, observed, rate
from pinchpoint.snapshot import EngineReading, Histogram, Placement, ProbeOutcome, ProbeReading, Slo, Window
from pinchpoint.snapshot.comparison import LAST_PROBES

_FEWEST = 2  # of two the better one counts, so that one outlier says nothing
_NOT_THERE = frozenset(
    {
        ProbeOutcome.DNS,
        ProbeOutcome.CONNECT_REFUSED,
        ProbeOutcome.CONNECT_TIMEOUT,
        ProbeOutcome.TLS,
        ProbeOutcome.PROXY,
        ProbeOutcome.RESET,
    }
)
_TOO_LATE = frozenset({ProbeOutcome.FIRST_TOKEN_TIMEOUT, ProbeOutcome.OVERALL_TIMEOUT})
_FAILED = _TOO_LATE | _NOT_THERE
# ``resolve`` is ``dns`` in recordings of others.
_CONNECTING = ("resolve", "dns", "connect", "tls")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Medians of the last probes of one local target, the one with the longest way; ``None`` is unknown.

    The way (``network_…``) is the part of a probe's TTFT that the engine does not account for: network, gateway, proxy,
    and the HTTP side of the server. It is exact where the engine observed no other first token meanwhile; else the
    median of all that it observed is taken, whose prompts are seldom shorter than a probe's.

    ``client_ttft_missed_share`` is the share of all requests that miss the TTFT objective at their clients: the
    engine's TTFTs with the way added, or its end-to-end times where answers come whole. ``network_ttft_missed_share``
    are those of them that the engine served in time.
    """

    way_probes: float = 0.0
    probe_client_ttft_seconds: float | None = None
    probe_engine_ttft_seconds: float | None = None
    network_ttft_seconds: float | None = None
    network_ttft_share: float | None = None
    probe_client_tpot_seconds: float | None = None
    probe_engine_inter_token_seconds: float | None = None
    probe_connect_seconds: float | None = None  # name, connection, TLS: before TTFT begins
    probe_buffered_share: float | None = None
    probe_late_share: float | None = None  # no first token in time, or no end, though the engine served meanwhile
    probe_stuck_share: float | None = None  # the same, and the engine made no token for anybody: it may hang
    probe_lost_share: float | None = None  # the first again, of those that never reached a server
    probe_failure: str = ""  # the most frequent reason of these
    client_ttft_missed_share: float | None = None
    network_ttft_missed_share: float | None = None
    speculates: bool = False  # an engine step may make several tokens


@dataclass(frozen=True, slots=True)
class _Seen:
    """One probe by the client's clock, and what the engine observed meanwhile."""

    probe: ProbeReading
    client_seconds: float
    engine: Histogram
    inter_token: Histogram | None


def way_of(
    window: Window, engine: str, probes: Sequence[ProbeReading], readings: Sequence[EngineReading], slo: Slo
) -> Way | None:
    """``probes``: those that are said to lead to the engine; ``readings``: its scrapes since its restart.

    A local target that names no engine leads to the only one there is. ``None`` where none leads here.
    """
    if not readings:
        return None
    found: dict[str, list[ProbeReading]] = {}
    for probe in _local(probes, window, engine):
        if readings[0].at <= ended(probe) <= readings[-1].at:
            found.setdefault(probe.target, []).append(probe)
    ways = [_way(own[-LAST_PROBES:], readings, slo) for own in found.values()]
    return max(ways, key=lambda way: (way.network_ttft_seconds or 0.0, way.way_probes), default=None)


def ended(probe: ProbeReading) -> float:
    """When a probe ended, on the readings' clock; not every recording says how long it took."""
    took = probe.duration_seconds
    if took is None:
        took = (probe.ttft_seconds or 0.0) + probe.phases.get("generation", 0.0)
    return probe.at + took


def _local(named: Sequence[ProbeReading], window: Window, engine: str) -> Sequence[ProbeReading]:
    latest = window.latest
    alone = latest is not None and latest.engine_names() == (engine,)
    if named or not alone or latest is None or not any(_is_nobodys(probe) for probe in latest.probes):
        return [probe for probe in named if probe.placement is Placement.LOCAL]
    found = {(p.target, p.at): p for snapshot in window.snapshots for p in snapshot.probes if _is_nobodys(p)}
    return sorted(found.values(), key=lambda probe: probe.at)


def _is_nobodys(probe: ProbeReading) -> bool:
    return probe.engine is None and probe.placement is Placement.LOCAL


def _way(last: Sequence[ProbeReading], readings: Sequence[EngineReading], slo: Slo) -> Way:
    if len(last) < _FEWEST:
        return Way(way_probes=float(len(last)))
    seen = _of_one_kind([both for probe in last if (both := _seen(probe, readings)) is not None])
    client = median_low(both.client_seconds for both in seen) if seen else None
    own = _engines(seen)
    gap = None if client is None or own is None else max(0.0, client - own)
    # A stream that is held back has no pace: its tokens come together.
    paced = [probe.tpot_seconds for probe in last if probe.tpot_seconds is not None]
    buffered = sum(probe.buffered for probe in last) / len(last)
    missed, network = _missed(seen, readings, gap, slo, whole=buffered > 0.5)
    failed = [probe for probe in last if probe.outcome in _FAILED and _served(probe, readings, slo)]
    late = [probe for probe in failed if probe.outcome in _TOO_LATE]
    stuck = [probe for probe in late if _rests(_during(probe, readings))]
    return Way(
        way_probes=float(len(last)),
        probe_client_ttft_seconds=client if own is not None else None,
        probe_engine_ttft_seconds=own,
        network_ttft_seconds=gap,
        network_ttft_share=known(gap / client) if gap is not None and client else None,
        probe_client_tpot_seconds=median_low(paced) if len(paced) >= _FEWEST else None,
        probe_engine_inter_token_seconds=_median([both.inter_token.mean for both in seen if both.inter_token]),
        probe_connect_seconds=_median([_connecting(probe) for probe in last]),
        probe_buffered_share=buffered,
        probe_late_share=(len(late) - len(stuck)) / len(last),
        probe_stuck_share=len(stuck) / len(last),
        probe_lost_share=sum(probe.outcome in _NOT_THERE for probe in failed) / len(last),
        probe_failure=Counter(probe.outcome.value for probe in failed).most_common(1)[0][0] if failed else "",
        client_ttft_missed_share=missed,
        network_ttft_missed_share=network,
        speculates=any(replica.speculative_drafts_total is not None for replica in readings[-1].replicas),
    )


def _during(probe: ProbeReading, readings: Sequence[EngineReading]) -> Sequence[EngineReading]:
    """From the scrape before the probe to the one after its end; none where either is missing."""
    before = bisect_right(readings, probe.at, key=lambda reading: reading.at) - 1
    after = bisect_left(readings, ended(probe), key=lambda reading: reading.at)
    return () if before < 0 or after == len(readings) else readings[before : after + 1]


def _served(probe: ProbeReading, readings: Sequence[EngineReading], slo: Slo) -> bool:
    """Whether the engine did well while this probe waited: no queue, tokens for all that ran, first ones in time."""
    during = _during(probe, readings)
    every = [replica for reading in during for replica in reading.replicas]
    if all(replica.requests_running is None for replica in every) or any(
        (waiting_of(replica) or 0.0) > 0 for replica in every
    ):
        return False
    meanwhile = histories(during)
    runs = all((replica.requests_running or 0.0) > 0 for replica in every)
    if runs and not rate(meanwhile, lambda replica: replica.generation_tokens_total):
        return False
    first = observed(meanwhile, lambda replica: replica.ttft_seconds)
    within = first.share_within(slo.ttft_seconds) if first else None
    return within is None or within >= 0.95


def _rests(during: Sequence[EngineReading]) -> bool:
    """Whether no token was made, by the counters' word."""
    return rate(histories(during), lambda replica: replica.generation_tokens_total) == 0


def _seen(probe: ProbeReading, readings: Sequence[EngineReading]) -> _Seen | None:
    if probe.ttft_seconds is None:
        return None
    meanwhile = histories(_during(probe, readings))
    engine = observed(meanwhile, lambda replica: replica.ttft_seconds)
    if engine is None or engine.count < 1:
        return None
    tokens = observed(meanwhile, lambda replica: replica.inter_token_seconds or replica.tpot_seconds)
    return _Seen(probe, probe.ttft_seconds, engine, tokens)


def _of_one_kind(seen: Sequence[_Seen]) -> Sequence[_Seen]:
    """Those that were alone on the engine, if there are enough; of too few, none."""
    exact = [both for both in seen if both.engine.count == 1]
    chosen = exact if len(exact) >= _FEWEST else seen
    return chosen if len(chosen) >= _FEWEST else []


def _engines(seen: Sequence[_Seen]) -> float | None:
    if seen and all(both.engine.count == 1 for both in seen):
        return _median([both.engine.mean for both in seen])
    together = _together([both.engine for both in seen])
    middle = together.quantile(0.5) if together is not None else None
    if middle is None:
        return None
    return known(middle.value if middle.value is not None else middle.at_most)


def _missed(
    seen: Sequence[_Seen], readings: Sequence[EngineReading], gap: float | None, slo: Slo, *, whole: bool
) -> tuple[float | None, float | None]:
    """Of all requests since the first of the probes: those that miss TTFT at the client, and those only there."""
    if not seen or gap is None:
        return None, None
    begin = bisect_right(readings, seen[0].probe.at, key=lambda reading: reading.at) - 1
    since = histories(readings[max(0, begin) :])
    first = observed(since, lambda replica: replica.ttft_seconds)
    at_engine = first.share_within(slo.ttft_seconds) if first is not None else None
    if first is None or at_engine is None:
        return None, None
    answers = observed(since, lambda replica: replica.e2e_seconds) if whole else None
    told = first.share_within(slo.ttft_seconds - gap) if answers is None else answers.share_within(slo.ttft_seconds)
    if told is None:
        return None, None
    at_client = min(told, at_engine)
    return 1.0 - at_client, at_engine - at_client


def _together(histograms: Sequence[Histogram]) -> Histogram | None:
    together: Histogram | None = None
    for histogram in histograms:
        together = histogram if together is None else together.plus(histogram) or together
    return together


def _connecting(probe: ProbeReading) -> float | None:
    spent = [probe.phases[phase] for phase in _CONNECTING if phase in probe.phases]
    return sum(spent) if spent else None


def _median(values: Sequence[float | None], at_least: int = _FEWEST) -> float | None:
    numbers = [number for value in values if (number := known(value)) is not None]
    return median_low(numbers) if len(numbers) >= at_least else None
