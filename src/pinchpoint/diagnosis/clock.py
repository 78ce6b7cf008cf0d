"""What a slow SM clock costs: computing takes as much longer as the clock is slower, reading memory much less."""

from pinchpoint.diagnosis.rates import mean
from pinchpoint.diagnosis.signals import Signals
from pinchpoint.diagnosis.thresholds import Thresholds

_SLOWEST = 0.01


def slowdown(clock: float, signals: Signals, thresholds: Thresholds) -> float:
    """How much longer this engine's steps take at that share of the maximum clock (0: not at all, 1: twice as long).

    Memory has a clock of its own, and decode loses next to nothing until there are too few loads in flight to fill it
    (arXiv 2605.11999). Where the model is unknown all is taken to be computing.
    """
    share = signals.roofline.roofline_compute_share
    computing = 1.0 if share is None else share
    clock = min(1.0, max(clock, _SLOWEST))  # no clock above its own maximum makes a step shorter
    reading = max(0.0, thresholds.clock_fills_memory_ratio / clock - 1.0)
    return computing * (1.0 / clock - 1.0) + (1.0 - computing) * reading


def quicker_at_full_clock(clock: float, signals: Signals, thresholds: Thresholds) -> float:
    """How many times as fast a step would be. What a step does besides computing and reading takes as long as now."""
    longer = slowdown(clock, signals, thresholds)
    explained = signals.roofline.step_explained_ratio
    saved = longer / (1.0 + longer)
    return 1.0 / (1.0 - (saved if explained is None else min(saved, explained * longer)))


def slowdown_of(signals: Signals, thresholds: Thresholds) -> float:
    """The same at the clocks that its cards have now. The slowest of a replica's cards sets the pace of its steps."""
    clocks = [card.clock_ratio for card in signals.devices.cards if card.clock_ratio is not None]
    if not clocks:
        return 0.0
    clock = mean(clocks) if (signals.load.replicas_seen or 1.0) > 1.0 else min(clocks)
    return slowdown(clock, signals, thresholds) if clock is not None and clock < thresholds.clock_slow_ratio else 0.0
