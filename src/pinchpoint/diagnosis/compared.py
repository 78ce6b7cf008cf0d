"""What our own probes tell of an engine beside its own word: how a hosted API does, and what happens on the way."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from pinchpoint.diagnosis.rates import histories, known, observed
from pinchpoint.snapshot import EngineReading, Histogram, Placement, ProbeComparison, ProbeReading, Window
from pinchpoint.snapshot.comparison import LAST_PROBES, MIN_PROBES


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Medians of the last probes; ``None`` is unknown.

    ``network_ttft_share`` is the part of a probe's TTFT that the engine does not account for: network, gateway, proxy,
    and the HTTP side of the server. It is exact where the engine observed no other first token meanwhile; else the
    median of all that it observed is taken, whose prompts are seldom shorter than a probe's.
    """

    probe_local_ttft_seconds: float | None = None
    probe_hosted_ttft_seconds: float | None = None
    probe_local_to_hosted_ttft_ratio: float | None = None
    probe_local_to_hosted_characters_ratio: float | None = None
    probe_waits_in_vain_share: float | None = None  # of the last probes: no first token in time
    probe_client_ttft_seconds: float | None = None  # of the probes that the engine's word is known of
    probe_engine_ttft_seconds: float | None = None
    network_ttft_share: float | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """One probe by the client's clock, and what the engine observed meanwhile."""

    client_seconds: float
    engine: Histogram

    @property
    def exact(self) -> bool:
        return self.engine.count == 1


def compared_of(
    window: Window, engine: str, probes: Sequence[ProbeReading], readings: Sequence[EngineReading]
) -> Compared | None:
    """``probes``: those that are said to lead to the engine; ``readings``: its scrapes since its restart.

    A local target that names no engine leads to the only one there is. ``None`` where none leads here.
    """
    latest = window.latest
    if latest is None:
        return None
    alone = latest.engine_names() == (engine,)
    hosted = [c for c in latest.comparisons if c.engine == engine or (c.engine is None and alone)]
    slowest = max(hosted, key=_slowness, default=None)
    client, own = _on_both_clocks(_local(probes, window, alone=alone), readings)
    if slowest is None and client is None:
        return None
    share = None if client is None or own is None or client <= 0 else max(0.0, 1.0 - own / client)
    return Compared(
        **(_against_hosted(slowest) if slowest else {}),
        probe_client_ttft_seconds=client,
        probe_engine_ttft_seconds=own,
        network_ttft_share=known(share),
    )


def _against_hosted(found: ProbeComparison) -> dict[str, float | None]:
    local = found.local
    return {
        "probe_local_ttft_seconds": local.ttft_seconds,
        "probe_hosted_ttft_seconds": found.theirs.ttft_seconds,
        "probe_local_to_hosted_ttft_ratio": found.ratios.get("ttft"),
        "probe_local_to_hosted_characters_ratio": found.ratios.get("characters_per_second"),
        "probe_waits_in_vain_share": local.too_slow / local.probes if local.probes else None,
    }


def _slowness(found: ProbeComparison) -> float:
    return inf if found.local.mostly_too_slow else found.ratios.get("ttft", 0.0)


def _local(named: Sequence[ProbeReading], window: Window, *, alone: bool) -> Sequence[ProbeReading]:
    if named or not alone or not window.latest or not any(_is_nobodys(probe) for probe in window.latest.probes):
        return [probe for probe in named if probe.placement is Placement.LOCAL]
    found = {(p.target, p.at): p for snapshot in window.snapshots for p in snapshot.probes if _is_nobodys(p)}
    return sorted(found.values(), key=lambda probe: probe.at)


def _is_nobodys(probe: ProbeReading) -> bool:
    return probe.engine is None and probe.placement is Placement.LOCAL


def _on_both_clocks(
    probes: Sequence[ProbeReading], readings: Sequence[EngineReading]
) -> tuple[float | None, float | None]:
    """The median TTFT as the probes saw it and as the engine did, over the same time; both ``None`` of too few."""
    seen = [both for probe in probes if (both := _seen(probe, readings)) is not None]
    exact = [both for both in seen if both.exact][-LAST_PROBES:]
    if len(exact) >= MIN_PROBES:
        means = [mean for both in exact if (mean := both.engine.mean) is not None]
        return median(both.client_seconds for both in exact), known(median(means))
    mixed = seen[-LAST_PROBES:]
    if len(mixed) < MIN_PROBES:
        return None, None
    together: Histogram | None = mixed[0].engine
    for both in mixed[1:]:
        together = together.plus(both.engine) if together is not None else None
    middle = together.quantile(0.5) if together is not None else None
    own = None if middle is None else known(middle.value if middle.value is not None else middle.at_most)
    return (None, None) if own is None else (median(both.client_seconds for both in mixed), own)


def _seen(probe: ProbeReading, readings: Sequence[EngineReading]) -> _Seen | None:
    """What the engine observed from the scrape before the probe to the one after its end."""
    if probe.ttft_seconds is None or probe.duration_seconds is None:
        return None
    ended = probe.at + probe.duration_seconds
    before = bisect_right(readings, probe.at, key=lambda reading: reading.at) - 1
    after = bisect_left(readings, ended, key=lambda reading: reading.at)
    if before < 0 or after == len(readings):
        return None
    engine = observed(histories(readings[before : after + 1]), lambda replica: replica.ttft_seconds)
    return None if engine is None or engine.count < 1 else _Seen(probe.ttft_seconds, engine)
