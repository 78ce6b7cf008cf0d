"""Who asks for what: arrivals and lengths, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log
from random import Random


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Log-normal token counts: ``median``, spread ``sigma`` of the logarithm, cut to ``low``..``high``."""

    median: float
    sigma: float = 0.4
    low: int = 1
    high: int = 4096

    def draw(self, random: Random) -> int:
        return max(self.low, min(self.high, round(random.lognormvariate(log(self.median), self.sigma))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Open arrivals, closed ones (clients that ask again ``think_seconds`` after an answer), or both.

    ``burstiness`` is the coefficient of variation of the times between open arrivals: 1 is Poisson, more comes in
    bursts (Gamma). Their rate swings by ``swing_ratio`` around its mean, once in ``swing_period_seconds``.

    A share ``prefix_share`` of the prompts begins with one of ``prefixes`` texts of ``prefix_tokens`` (system prompts).
    A client goes on for ``turns``: each prompt holds the whole talk so far, as an agent's does. Such clients find their
    own talk in the prefix cache and nobody else's: a system prompt is computed once in each talk. A share
    ``length_share`` of the answers ends by ``max_tokens``, the others by the model's own stop.
    """

    arrivals_per_second: float = 0.0
    burstiness: float = 1.0
    swing_ratio: float = 0.0
    swing_period_seconds: float = 86_400.0
    clients: int = 0
    think_seconds: float = 0.0
    ramp_seconds: float = 2.0  # over which the clients appear
    turns: int = 1
    prompt: Lengths = field(default_factory=lambda: Lengths(median=400))
    output: Lengths = field(default_factory=lambda: Lengths(median=150))
    prefixes: int = 1
    prefix_tokens: int = 0
    prefix_share: float = 0.0
    length_share: float = 0.2
