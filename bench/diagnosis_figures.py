"""What the rows come to: shares of right and wrong answers, each with what chance leaves open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

from bench.diagnosis_rows import Answer, Row
from pinchpoint.simulator.truth import Truth

CONFIDENT = 0.8
_Z = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """``count`` of ``of``; ``strict``: of as many, where only the label counts and no tie does. ``None``: can't be
    told of this judge."""

    what: str
    count: int
    of: int
    strict: int | None = None
    at_least: float | None = None
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        return self.count / self.of if self.of else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true share lies with 95 %: Wilson 1927."""
        if not self.of:
            return (0.0, 1.0)
        n, p = self.of, self.ratio
        middle, half = p + _Z**2 / (2 * n), _Z * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2))
        return (max(0.0, (middle - half) / (1 + _Z**2 / n)), min(1.0, (middle + half) / (1 + _Z**2 / n)))

    @property
    def met(self) -> bool | None:
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most


_Test = Callable[[Answer, frozenset[str]], bool]


def first_right(answer: Answer, true: frozenset[str]) -> bool:
    return not true.isdisjoint(answer.named)


def first_two_right(answer: Answer, true: frozenset[str]) -> bool:
    return first_right(answer, true) or not true.isdisjoint(answer.others)


def abstained(answer: Answer, _: frozenset[str] = frozenset()) -> bool:
    return answer.named == ("unknown",)


def confidently_wrong(answer: Answer, true: frozenset[str]) -> bool:
    confident = answer.confidence is not None and answer.confidence >= CONFIDENT
    return confident and not abstained(answer) and not first_right(answer, true)


def shares(rows: Sequence[Row], judge: str) -> list[Share]:
    """The figures of one judge, with their aims."""
    told = [(row.truth, row.answers[judge]) for row in rows if judge in row.answers]

    def share(what: str, test: _Test, at_least: float | None = None, at_most: float | None = None) -> Share:
        return Share(
            what=what,
            count=sum(test(answer, frozenset(truth.ties)) for truth, answer in told),
            of=len(told),
            strict=sum(test(answer, frozenset((truth.label,))) for truth, answer in told),
            at_least=at_least,
            at_most=at_most,
        )

    ranks = any(answer.confidence is not None for _, answer in told)  # a judge that doesn't has findings, any number
    found = [
        share("top-1", first_right, at_least=0.92),
        share("top-2" if ranks else "any finding", first_two_right, at_least=0.98),
        share("abstained", abstained, at_most=0.08),
    ]
    if ranks:
        found.append(share(f"wrong at a confidence of {CONFIDENT} or more", confidently_wrong, at_most=0.04))
        found += [
            _said(told, "said that more GPUs help, and they don't", said=True, at_most=0.02),
            _said(told, "said that they don't, and they do", said=False),
            _said(told, "did not say whether more GPUs help", said=None),
        ]
    return found


def _said(told: Sequence[tuple[Truth, Answer]], what: str, *, said: bool | None, at_most: float | None = None) -> Share:
    count = sum(
        answer.more_gpus_help is said and (said is None or truth.more_gpus_help is not said) for truth, answer in told
    )
    return Share(what=what, count=count, of=len(told), at_most=at_most)


def recall(rows: Sequence[Row], judge: str) -> dict[str, Share]:
    """Of each class, by its label: how often the first answer was true."""
    labels = sorted({row.truth.label for row in rows})
    return {
        label: Share(
            what=label,
            count=sum(first_right(row.answers[judge], frozenset(row.truth.ties)) for row in own),
            of=len(own),
            strict=sum(first_right(row.answers[judge], frozenset((label,))) for row in own),
        )
        for label in labels
        for own in ([row for row in rows if row.truth.label == label and judge in row.answers],)
    }


def confusion(rows: Sequence[Row], judge: str) -> Mapping[tuple[str, str], int]:
    """(true, said) -> how often. A tie that was named counts as what was said; otherwise the label is what was true."""
    pairs: Counter[tuple[str, str]] = Counter()
    for row in rows:
        said = row.answers[judge].named[0]
        pairs[said if said in row.truth.ties else row.truth.label, said] += 1
    return pairs
