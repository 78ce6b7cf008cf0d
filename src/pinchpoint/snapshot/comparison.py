"""A local target against hosted ones: the medians of their last probes, and how they relate. Arithmetic, no verdict.

Both sides count as many probes, the newest, so that a change here shows after a few of ours however rarely a hosted API
is asked. A probe that got no first token in time is slower than all that did, and counts so; one that failed otherwise
was no measurement.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from statistics import median
from typing import Any

from pinchpoint.snapshot.model_family import are_kin
from pinchpoint.snapshot.probe import Placement, ProbeOutcome, ProbeReading

LAST_PROBES = 5  # of each target: two outliers move no median
MIN_PROBES = 3  # fewer have no median worth the name
FRESH_SECONDS = 3600.0  # older ones are of another hour's load; five hosted probes at their usual interval take 25 min


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeMedians:
    """Medians of one side. ``None``: too few probes had a value, or the middle one had no first token in time.

    ``probes`` is how many measured the first token, ``too_slow`` how many of them waited for it in vain.
    """

    probes: int = 0
    too_slow: int = 0
    ttft_seconds: float | None = None
    ttfc_seconds: float | None = None
    tpot_seconds: float | None = None
    characters_per_second: float | None = None

    @property
    def mostly_too_slow(self) -> bool:
        return self.too_slow > self.probes / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeComparison:
    """One local target and the ``hosted`` ones that it is held against.

    ``ratios`` are local over hosted, by signal: ``ttft``, ``ttfc``, ``tpot`` (above 1, ours is slower) and
    ``characters_per_second`` (below 1, ours is slower). One that would compare unlike things is not there: TTFT where
    reasoning is hidden in it, TPOT of tokens that were not counted by the servers or come from unlike models.
    """

    target: str
    engine: str | None = None
    hosted: tuple[str, ...] = ()
    local: ProbeMedians = field(default_factory=ProbeMedians)
    theirs: ProbeMedians = field(default_factory=ProbeMedians)
    ratios: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Side:
    last: ProbeReading
    medians: ProbeMedians
    values: Mapping[str, float]  # by signal, only what may be compared; +inf: no first token in time


def compared(
    targets: Iterable[Sequence[ProbeReading]], now: float, *, last: int = LAST_PROBES, at_least: int = MIN_PROBES
) -> tuple[ProbeComparison, ...]:
    """Each local target that has somebody to be held against. ``targets`` holds the probes of each, oldest first.

    A target names its counterparts in ``compare_with``; else they are the hosted ones with a model of the same family,
    else all of them.
    """
    sides = [side for probes in targets if (side := _side(probes[-last:], now, at_least)) is not None]
    hosted = [side for side in sides if side.last.placement is Placement.HOSTED]
    found = (_comparison(side, hosted) for side in sides if side.last.placement is Placement.LOCAL)
    return tuple(comparison for comparison in found if comparison.hosted)


def _side(probes: Sequence[ProbeReading], now: float, at_least: int) -> _Side | None:
    newest = [probe for probe in probes if now - probe.at <= FRESH_SECONDS]
    if not newest:
        return None
    first = [seconds for probe in newest if (seconds := _until(probe, probe.ttft_seconds)) is not None]
    hides = any(probe.reasoning in ("hidden", "summary") for probe in newest)
    counted = all(probe.token_source in ("usage", None) for probe in newest)
    medians = {
        "ttft": _median(newest, lambda probe: _until(probe, probe.ttft_seconds), at_least),
        "ttfc": _median(newest, lambda probe: _until(probe, probe.ttfc_seconds), at_least),
        "tpot": _median(newest, lambda probe: probe.tpot_seconds, at_least),
        "characters_per_second": _median(newest, lambda probe: probe.characters_per_second, at_least),
    }
    left_out = {"ttft": hides, "tpot": not counted}
    return _Side(
        last=newest[-1],
        medians=ProbeMedians(probes=len(first), too_slow=sum(seconds == inf for seconds in first), **_named(medians)),
        values={name: m for name, m in medians.items() if m is not None and not left_out.get(name)},
    )


def _until(probe: ProbeReading, seconds: float | None) -> float | None:
    return inf if probe.outcome is ProbeOutcome.FIRST_TOKEN_TIMEOUT else seconds


def _median(
    probes: Sequence[ProbeReading], pick: Callable[[ProbeReading], float | None], at_least: int
) -> float | None:
    values = [value for probe in probes if (value := pick(probe)) is not None]
    return median(values) if len(values) >= at_least else None


def _named(medians: Mapping[str, float] | Mapping[str, float | None]) -> dict[str, Any]:
    """Under the names of the fields; what is endless is not known."""
    return {
        name if name == "characters_per_second" else f"{name}_seconds": m if m is not None and isfinite(m) else None
        for name, m in medians.items()
    }


def _comparison(side: _Side, hosted: Sequence[_Side]) -> ProbeComparison:
    local = side.last
    wanted = _counterparts(local, hosted)
    others = [other for other in wanted if other.medians.probes] or wanted  # one that only fails says nothing
    together = {
        signal: median(values)
        for signal in ("ttft", "ttfc", "tpot", "characters_per_second")
        if (values := [o.values[signal] for o in others if signal in o.values and _alike(signal, local, o.last)])
    }
    ratios = {
        signal: ratio
        for signal, theirs in together.items()
        if signal in side.values and theirs and isfinite(theirs) and isfinite(ratio := side.values[signal] / theirs)
    }
    probes, too_slow = (sum(getattr(o.medians, name) for o in others) for name in ("probes", "too_slow"))
    return ProbeComparison(
        target=local.target,
        engine=local.engine,
        hosted=tuple(other.last.target for other in others),
        local=side.medians,
        theirs=ProbeMedians(probes=probes, too_slow=too_slow, **_named(together)),
        ratios=ratios,
    )


def _counterparts(local: ProbeReading, hosted: Sequence[_Side]) -> Sequence[_Side]:
    if local.compare_with:
        return [other for other in hosted if other.last.target in local.compare_with]
    return [other for other in hosted if are_kin(local.model, other.last.model)] or hosted


def _alike(signal: str, one: ProbeReading, other: ProbeReading) -> bool:
    """Whether a token is a token on both sides: unlike models have unlike tokenizers."""
    return signal != "tpot" or are_kin(one.model, other.model) is not False
