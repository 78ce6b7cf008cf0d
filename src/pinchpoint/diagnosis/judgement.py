"""What one rule says, and the few words that all rules speak in."""

from collections.abc import Callable
from typing import NamedTuple

from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Bottleneck, Evidence


class Judgement(NamedTuple):
    """One class weighed. ``score`` runs from 0 (not this) to 1 (this, for certain); ``None`` abstains: the deciding
    signal is missing, and is named in ``missing``.

    A ``gate`` settles the matter when its turn comes; the others are ranked by score. ``evidence`` is a call: only that
    of the class that is named is put into words. ``contradicted_by`` is what lowered the score.
    """

    bottleneck: Bottleneck
    score: float | None
    why: str = ""
    evidence: Callable[[], tuple[Evidence, ...]] = tuple
    contradicted_by: tuple[Evidence, ...] = ()
    missing: tuple[str, ...] = ()
    gate: bool = False


Rule = Callable[[Signals, Thresholds], Judgement]


def ramp(value: float | None, begins: float, certain: float) -> float:
    """0 up to ``begins``, 1 from ``certain``, in proportion between; 0 for what is unknown."""
    if value is None:
        return 0.0
    if value >= certain:
        return 1.0
    return (value - begins) / (certain - begins) if value > begins else 0.0


def either(*degrees: float) -> float:
    """Independent reasons for the same conclusion: 1 minus the chance that none holds."""
    doubt = 1.0
    for degree in degrees:
        doubt *= 1.0 - degree
    return 1.0 - doubt


def fact(
    signal: str,
    value: float | None,
    text: str,
    words: Callable[[float], str],
    threshold: float | None = None,
) -> Evidence | None:
    """One piece of evidence: ``text`` with ``{value}`` and ``{threshold}`` in ``words``; ``None`` without a value."""
    if value is None:
        return None
    told = text.format(value=words(value), threshold="" if threshold is None else words(threshold))
    return Evidence(signal=signal, text=told, value=value, threshold=threshold)


def gathered(*facts: Evidence | None) -> tuple[Evidence, ...]:
    """The facts there are."""
    return tuple(fact for fact in facts if fact is not None)


def missing_of(**signals: float | None) -> tuple[str, ...]:
    """The names of the signals that are unknown."""
    return tuple(name for name, value in signals.items() if value is None)


def percent(ratio: float) -> str:
    return f"{100 * ratio:.0f} %"


def duration(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def count(number: float) -> str:
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
