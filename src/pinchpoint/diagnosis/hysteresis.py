"""What is shown: a class that has lasted, not the class of the moment."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis, Settled

_FAST = frozenset({Bottleneck.NO_DATA, Bottleneck.HARDWARE, Bottleneck.STALLED, Bottleneck.SLEEPING})
# A held class that was not seen for this many holds gives way to whatever is seen, even if that keeps changing.
_PATIENCE = 3


def settle(previous: Settled | None, diagnosis: Diagnosis, thresholds: Thresholds) -> Settled:
    """The next shown diagnosis, from the one before and the newest.

    A different class takes over once it has been seen for its hold without a break, ``since`` when it was first seen;
    the first verdict after too few scrapes at once. Until then the held class keeps its evidence, words and confidence,
    while signals, scores and latencies are the newest.
    """
    if previous is None:
        return Settled(diagnosis=diagnosis, since=diagnosis.at)
    held, seen, now = previous.diagnosis, diagnosis.bottleneck, diagnosis.at
    if seen is held.bottleneck:
        return Settled(diagnosis=diagnosis, since=previous.since)
    earlier = previous.candidate_since if seen is previous.candidate else None
    candidate_since = now if earlier is None else earlier
    contested_since = now if previous.contested_since is None else previous.contested_since
    hold = 0.0 if held.collecting else _hold(held.bottleneck, seen, thresholds)
    if now - candidate_since >= hold or now - contested_since >= _PATIENCE * max(hold, thresholds.hold_seconds):
        return Settled(diagnosis=diagnosis, since=candidate_since)
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
    )


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
    """Hard facts are shown soon, and an unknown gives way soon; everything else has to last."""
    fast = seen in _FAST or held in (Bottleneck.UNKNOWN, Bottleneck.NO_DATA)
    return thresholds.fast_hold_seconds if fast else thresholds.hold_seconds
