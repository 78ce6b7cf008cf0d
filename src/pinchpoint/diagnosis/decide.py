"""From a window to one class: gates first, then the best score, else an honest unknown."""

from collections.abc import Sequence
from dataclasses import replace

from pinchpoint.diagnosis.judgement import Judgement, ramp
from pinchpoint.diagnosis.levers import levers_for
from pinchpoint.diagnosis.memory import Advise, Memory
from pinchpoint.diagnosis.rules import AT_ONCE, BY_PROBES, OVER_TIME, unknown
from pinchpoint.diagnosis.signals import Signals, signals_of
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.us_or_them import us_or_them
from pinchpoint.diagnosis.verdict import Bottleneck, Diagnosis, Evidence
from pinchpoint.snapshot import Window

# What a card that nobody sees may be behind: one that throttles, is lost, or whose memory somebody else fills.
_CARDS_MATTER = (
    Bottleneck.COMPUTE,
    Bottleneck.MEMORY_BANDWIDTH,
    Bottleneck.HOST_CPU,
    Bottleneck.INTERCONNECT,
    Bottleneck.IMBALANCE,
    Bottleneck.STALLED,
    Bottleneck.HEALTHY,
)
# Seen, not inferred: what was a rival a moment ago, within the window, is none now.
_SEEN = (Bottleneck.NO_DATA, Bottleneck.SLEEPING, Bottleneck.IDLE, Bottleneck.STALLED)


def diagnose(
    window: Window,
    engine: str,
    now: float,
    thresholds: Thresholds,
    memory: Memory | None = None,
    held: Bottleneck | None = None,
) -> Diagnosis:
    """Names the bottleneck of one engine at ``now`` (same clock as the window); with a memory sooner, and the same.

    Hardware, freshness and sleep come first and need one tick. Then idle, stalled, memory_growth, imbalance and healthy
    settle the matter in this order; otherwise the class with the highest score is named, if it reaches ``name_score``.
    The class that is ``held``, the one shown, is ahead of the others by ``held_margin``: of two that are as good, each
    tick would name another. Raises on no reading.
    """
    if memory is None:
        signals = signals_of(window, engine, now, thresholds)
        return _judged(engine, signals, now, thresholds, held, levers_for)
    assert memory.thresholds is thresholds
    signals = signals_of(window, engine, now, thresholds, memory.measured)
    if not signals.load.scrapes:  # how long it was not seen is part of the verdict
        return _judged(engine, signals, now, thresholds, held, levers_for)
    before = memory.judged(engine, signals, held)
    if before is not None and signals.age_seconds is not None:
        return replace(before, at=now, signals={**before.signals, "age_seconds": signals.age_seconds})
    diagnosis = _judged(engine, signals, now, thresholds, held, memory.levers(engine))
    memory.keep(engine, signals, held, diagnosis)
    return diagnosis


def _judged(
    engine: str, signals: Signals, now: float, thresholds: Thresholds, held: Bottleneck | None, advise: Advise
) -> Diagnosis:
    over_time = OVER_TIME if signals.probed is None else BY_PROBES
    rules = AT_ONCE if signals.load.scrapes < thresholds.min_scrapes else (*AT_ONCE, *over_time)
    weighed = [rule(signals, thresholds) for rule in rules]
    verdict = _first_gate(weighed) or _best(weighed, thresholds, held) or unknown(signals, thresholds, weighed)
    scores = {judgement.bottleneck: judgement.score for judgement in weighed if judgement.score is not None}
    evidence = verdict.evidence()
    runner_up = None if verdict.bottleneck in _SEEN else _runner_up(verdict.bottleneck, scores)
    return Diagnosis(
        engine=engine,
        at=now,
        bottleneck=verdict.bottleneck,
        why=verdict.why,
        confidence_ratio=_confidence(
            verdict, 0.0 if verdict.gate or runner_up is None else scores[runner_up], signals, thresholds
        ),
        runner_up=runner_up,
        scores=scores,
        evidence=evidence + _beside((*evidence, *verdict.contradicted_by), us_or_them(signals, thresholds)),
        contradicted_by=verdict.contradicted_by,
        missing=verdict.missing,
        advice=advise(verdict.bottleneck, signals, thresholds, verdict.missing),
        signals=signals.numbers(),
        ttft=signals.ttft,
        inter_token=signals.inter_token,
        collecting=verdict.bottleneck is Bottleneck.UNKNOWN and signals.load.scrapes < thresholds.min_scrapes,
    )


def _beside(told: Sequence[Evidence], facts: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    signals = {fact.signal for fact in told}
    return tuple(fact for fact in facts if fact.signal not in signals)


def _first_gate(weighed: Sequence[Judgement]) -> Judgement | None:
    return next((judgement for judgement in weighed if judgement.gate), None)


def _best(weighed: Sequence[Judgement], thresholds: Thresholds, held: Bottleneck | None) -> Judgement | None:
    def standing(judgement: Judgement) -> float:
        score = judgement.score or 0.0
        return score + (thresholds.held_margin if score and judgement.bottleneck is held else 0.0)

    best = max(weighed, key=standing)
    return best if standing(best) >= thresholds.name_score else None


def _runner_up(named: Bottleneck, scores: dict[Bottleneck, float]) -> Bottleneck | None:
    """The next best class that has anything to say for itself."""
    others = {bottleneck: score for bottleneck, score in scores.items() if bottleneck is not named and score >= 0.1}
    return max(others, key=lambda bottleneck: others[bottleneck], default=None)


def _confidence(verdict: Judgement, rival: float, signals: Signals, thresholds: Thresholds) -> float:
    """How far to trust the answer (0..1): the score, reduced

    - to 0.95 where scores were weighed: an inference is never certain, as a gate may be;
    - to half when the runner-up is as good, not at all when it is 0.4 behind or a gate has settled the matter;
    - by a tenth for each missing signal of the class, to 0.6 at most;
    - to 0.75 where no GPU is seen and one that throttles, rests, or is lost looks the same from afar;
    - to 0.7 where the engine's counts are known to contradict each other;
    - to half at the fewest scrapes, not at all from ``full_scrapes`` (what one tick can tell is not reduced).
    """
    score = min(verdict.score or 0.0, 1.0 if verdict.gate else 0.95)
    margin = 0.5 + 0.5 * ramp(score - rival, 0.0, 0.4)
    known = max(0.6, 1.0 - 0.1 * len(verdict.missing))
    at_once = verdict.bottleneck in (Bottleneck.NO_DATA, Bottleneck.SLEEPING)
    amount = 1.0 if at_once else 0.5 + 0.5 * ramp(signals.load.scrapes, 0.0, thresholds.full_scrapes)
    trust = 0.7 if signals.doubtful and not at_once else 1.0
    seen = 0.75 if verdict.bottleneck in _CARDS_MATTER and signals.devices.gpus is None else 1.0
    return round(score * margin * min(known, seen) * amount * trust, 4)
