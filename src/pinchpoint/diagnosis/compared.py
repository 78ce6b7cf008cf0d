"""How a hosted API does beside an engine, by our own probes of both."""

from dataclasses import dataclass
from math import inf

from pinchpoint.snapshot import ProbeComparison, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Medians of the last probes, local against hosted; ``None`` is unknown."""

    probe_local_ttft_seconds: float | None = None
    probe_hosted_ttft_seconds: float | None = None
    probe_local_to_hosted_ttft_ratio: float | None = None
    probe_local_to_hosted_characters_ratio: float | None = None
    probe_waits_in_vain_share: float | None = None  # of the last probes: no first token in time


def compared_of(window: Window, engine: str) -> Compared | None:
    """A local target that names no engine leads to the only one there is. ``None`` where none leads here."""
    latest = window.latest
    if latest is None:
        return None
    alone = latest.engine_names() == (engine,)
    found = [c for c in latest.comparisons if c.engine == engine or (c.engine is None and alone)]
    slowest = max(found, key=_slowness, default=None)
    if slowest is None:
        return None
    local = slowest.local
    return Compared(
        probe_local_ttft_seconds=local.ttft_seconds,
        probe_hosted_ttft_seconds=slowest.theirs.ttft_seconds,
        probe_local_to_hosted_ttft_ratio=slowest.ratios.get("ttft"),
        probe_local_to_hosted_characters_ratio=slowest.ratios.get("characters_per_second"),
        probe_waits_in_vain_share=local.too_slow / local.probes if local.probes else None,
    )


def _slowness(found: ProbeComparison) -> float:
    return inf if found.local.mostly_too_slow else found.ratios.get("ttft", 0.0)
