"""What is shown: a class that has lasted, not the class of the moment."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis, Settled, Shown

_FAST = frozenset({Bottleneck.NO_DATA, Bottleneck.HARDWARE, Bottleneck.STALLED, Bottleneck.SLEEPING})
_PINCHES = frozenset(
    {
        Bottleneck.KV_CAPACITY,
        Bottleneck.COMPUTE,
        Bottleneck.MEMORY_BANDWIDTH,
        Bottleneck.SCHEDULER,
        Bottleneck.HOST_CPU,
        Bottleneck.INTERCONNECT,
        Bottleneck.NETWORK,
        Bottleneck.IMBALANCE,
    }
)
# A held class that was not seen for this many holds gives way to whatever is seen, even if that keeps changing.
_PATIENCE = 3


def settle(
    previous: Settled | None, diagnosis: Diagnosis, thresholds: Thresholds, step_seconds: float = 0.0
) -> Settled:
    """The next shown diagnosis, from the one before and the newest. ``step_seconds``: how often one is made.

    A different class takes over once it has been seen for its hold without a break, ``since`` when it was first seen;
    the first verdict after too few scrapes at once. Until then the held class keeps its evidence, words and confidence,
    while signals, scores and latencies are the newest. After a gap nothing is held: old evidence says nothing of now.
    """
    if previous is None:
        return begin(diagnosis, None, thresholds)
    held, seen, now = previous.diagnosis, diagnosis.bottleneck, diagnosis.at
    earlier = previous.earlier if now - previous.since <= thresholds.stale_seconds else None
    if not watched(held.at, now, thresholds, step_seconds):
        shown = None if held.collecting else Shown(bottleneck=held.bottleneck, since=previous.since, until=held.at)
        return begin(diagnosis, earlier or shown, thresholds)
    if earlier and not _blind(diagnosis):
        return begin(diagnosis, earlier, thresholds)
    if seen is held.bottleneck:
        return Settled(diagnosis=diagnosis, since=previous.since, earlier=earlier)
    candidate_since = previous.candidate_since if seen is previous.candidate else None
    candidate_since = now if candidate_since is None else candidate_since
    contested_since = now if previous.contested_since is None else previous.contested_since
    hold = 0.0 if held.collecting else _hold(held.bottleneck, seen, thresholds)
    if now - candidate_since >= hold or now - contested_since >= _PATIENCE * max(hold, thresholds.hold_seconds):
        return Settled(diagnosis=diagnosis, since=candidate_since, earlier=earlier)
    return Settled(
        diagnosis=replace(
            held,
            at=now,
            signals=diagnosis.signals,
            scores=diagnosis.scores,
            ttft=diagnosis.ttft,
            inter_token=diagnosis.inter_token,
        ),
        since=previous.since,
        candidate=seen,
        candidate_since=candidate_since,
        contested_since=contested_since,
        earlier=earlier,
    )


def begin(diagnosis: Diagnosis, earlier: Shown | None, thresholds: Thresholds) -> Settled:
    """What is shown first, at the start or after a gap: what is seen.

    A class that was shown ``earlier`` goes on since then, unless the gap was longer than ``resume_seconds``.
    """
    now = diagnosis.at
    if earlier is None or not 0 <= now - earlier.until <= thresholds.resume_seconds:
        return Settled(diagnosis=diagnosis, since=now)
    if diagnosis.bottleneck is earlier.bottleneck and not diagnosis.collecting:
        return Settled(diagnosis=diagnosis, since=earlier.since)
    return Settled(diagnosis=diagnosis, since=now, earlier=earlier if _blind(diagnosis) else None)


def _blind(diagnosis: Diagnosis) -> bool:
    """Whether the engine is yet to be seen."""
    return diagnosis.collecting or diagnosis.bottleneck is Bottleneck.NO_DATA


def watched(before: float, now: float, thresholds: Thresholds, step_seconds: float = 0.0) -> bool:
    """Whether somebody looked between two verdicts: no more apart than what one verdict looks at, and not backwards.

    In a recording of rare scrapes that is ``min_scrapes`` of them.
    """
    return 0 <= now - before <= max(thresholds.window_seconds, thresholds.min_scrapes * step_seconds)


def tally(
    class_seconds: Mapping[tuple[str, Bottleneck], float], every: Iterable[Settled], elapsed: float
) -> Mapping[tuple[str, Bottleneck], float]:
    """``class_seconds`` with ``elapsed`` more seconds in the class that is shown now of each engine."""
    told = dict(class_seconds)
    for settled in every:
        key = (settled.diagnosis.engine, settled.diagnosis.bottleneck)
        told[key] = told.get(key, 0.0) + max(0.0, elapsed)
    return told


def _hold(held: Bottleneck, seen: Bottleneck, thresholds: Thresholds) -> float:
    """Hard facts are shown soon, and an unknown gives way soon; everything else has to last, a recovery longest."""
    if seen is Bottleneck.HEALTHY and held in _PINCHES:
        return max(thresholds.hold_seconds, thresholds.recovery_hold_seconds)
    fast = seen in _FAST or held in (Bottleneck.UNKNOWN, Bottleneck.NO_DATA)
    return thresholds.fast_hold_seconds if fast else thresholds.hold_seconds
