"""A figure: one quantity, measured several times of each exporter, and what to make of the repetitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

Statistic = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True)
class Spread:
    """A value and the range of the repetitions that it stands for."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """``rounds`` is, by exporter, a list of samples for each repetition; repetitions of one number hold one sample.

    ``statistic`` is taken of all samples for the value, and of each repetition for the range.
    """

    what: str
    unit: str
    rounds: Mapping[str, Sequence[Sequence[float]]]
    statistic: Statistic = median
    aim: float | None = None  # at most

    @property
    def n(self) -> int:
        """How many samples the value is made of."""
        return sum(map(len, next(iter(self.rounds.values()))))

    def of(self, exporter: str) -> Spread:
        rounds = self.rounds[exporter]
        each = [self.statistic(samples) for samples in rounds]
        return Spread(self.statistic([sample for samples in rounds for sample in samples]), min(each), max(each))

    def ratio(self, exporter: str, other: str) -> Spread | None:
        """``exporter`` over ``other``; the range is that of repetitions made at the same time.

        ``None`` where ``other`` has a repetition of 0: CPU time is counted in steps of 10 ms.
        """
        pairs = list(zip(self.rounds[exporter], self.rounds[other], strict=True))
        if not all(self.statistic(theirs) for _, theirs in pairs):
            return None
        each = [self.statistic(mine) / self.statistic(theirs) for mine, theirs in pairs]
        return Spread(self.of(exporter).value / self.of(other).value, min(each), max(each))

    def meets_aim(self, exporter: str) -> bool | None:
        return None if self.aim is None else self.of(exporter).value <= self.aim


def p50(samples: Sequence[float]) -> float:
    return median(samples)


def p99(samples: Sequence[float]) -> float:
    """The smallest sample that 99 % of the samples do not exceed."""
    return sorted(samples)[-(-99 * len(samples) // 100) - 1]
