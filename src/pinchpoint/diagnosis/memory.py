"""What was found of each engine at the tick before: with nothing new to look at, the same is found again.

An engine is scraped every few seconds and judged every second. Measuring is a function of the scrapes, and the verdict
one of what was measured, so either is taken from here when what it is made of is the same. Never changes an answer.
"""

from collections.abc import Callable, Collection, Sequence

from pinchpoint.diagnosis.levers import levers_for, looked_at
from pinchpoint.diagnosis.signals import Measured, Scrapes, Signals, measured
from pinchpoint.diagnosis.thresholds import Thresholds
from pinchpoint.diagnosis.verdict import Advice, Bottleneck, Diagnosis

Advise = Callable[[Bottleneck, Signals, Thresholds, Sequence[str]], tuple[Advice, ...]]


class Memory:
    """Of each engine what was measured last, and the verdict on it. For one thread."""

    def __init__(self, thresholds: Thresholds) -> None:
        self.thresholds = thresholds  # what is here holds for these alone
        self._measured: dict[str, Measured] = {}
        self._judged: dict[str, tuple[Signals, Bottleneck | None, Diagnosis]] = {}
        self._advised: dict[str, tuple[object, tuple[Advice, ...]]] = {}

    def measured(
        self, engine: str, epoch: Scrapes, readings: Scrapes, thresholds: Thresholds, gpu_name: str | None
    ) -> Measured:
        """What these scrapes measure, on cards of this name."""
        found = self._measured.get(engine)
        if found is None or found.readings != readings or found.epoch != epoch or found.gpu_name != gpu_name:
            self._measured[engine] = found = measured(engine, epoch, readings, thresholds, gpu_name)
        return found

    def judged(self, engine: str, signals: Signals, held: Bottleneck | None = None) -> Diagnosis | None:
        """The verdict on these signals beside this class, but for the age of the scrape; ``None``: yet to be found."""
        before, beside, diagnosis = self._judged.get(engine, (None, None, None))
        return diagnosis if beside is held and before == signals else None

    def keep(self, engine: str, signals: Signals, held: Bottleneck | None, diagnosis: Diagnosis) -> None:
        self._judged[engine] = (signals, held, diagnosis)

    def levers(self, engine: str) -> Advise:
        """``levers_for``, of this engine."""

        def advise(
            bottleneck: Bottleneck, signals: Signals, thresholds: Thresholds, missing: Sequence[str]
        ) -> tuple[Advice, ...]:
            made_of = (bottleneck, looked_at(bottleneck, signals), tuple(missing))
            before, advice = self._advised.get(engine, (None, ()))
            if before != made_of:
                advice = levers_for(bottleneck, signals, thresholds, missing)
                self._advised[engine] = (made_of, advice)
            return advice

        return advise

    def forget_all_but(self, engines: Collection[str]) -> None:
        """Ends what is remembered of engines that are gone."""
        for gone in (self._measured.keys() | self._judged.keys() | self._advised.keys()) - set(engines):
            for each in (self._measured, self._judged, self._advised):
                each.pop(gone, None)
