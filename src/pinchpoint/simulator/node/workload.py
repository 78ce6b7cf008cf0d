"""Who asks for what: arrivals and lengths, drawn from a seed."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf, log
from random import Random

from pinchpoint.simulator.engine.request import Request


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
    """Open arrivals (Poisson), closed ones (clients that ask again ``think_seconds`` after an answer), or both.

    A share ``prefix_share`` of the prompts begins with the same ``prefix_tokens`` (a system prompt). A share
    ``length_share`` of the answers ends by ``max_tokens``, the others by the model's own stop.
    """

    arrivals_per_second: float = 0.0
    clients: int = 0
    think_seconds: float = 0.0
    ramp_seconds: float = 2.0  # over which the clients appear
    prompt: Lengths = field(default_factory=lambda: Lengths(median=400))
    output: Lengths = field(default_factory=lambda: Lengths(median=150))
    prefix_tokens: int = 0
    prefix_share: float = 0.0
    length_share: float = 0.2


class Traffic:
    """The requests of one engine's outside world, in time order."""

    def __init__(self, random: Random, workload: Workload, max_model_len: int, now: float) -> None:
        self._random = random
        self._max_model_len = max_model_len
        self._made = 0
        self.use(workload, now)

    def use(self, workload: Workload, now: float) -> None:
        """A different world from ``now`` on: clients of the old one ask no more."""
        self.workload = workload
        self._epoch = object()
        self._due = [(now + self._random.uniform(0.0, workload.ramp_seconds), True) for _ in range(workload.clients)]
        heapq.heapify(self._due)
        self._push_arrival(now)

    @property
    def next_at(self) -> float:
        """When the next request arrives; infinity when none will by itself."""
        return self._due[0][0] if self._due else inf

    def pop(self) -> Request:
        """The request that arrives at ``next_at``."""
        at, of_client = heapq.heappop(self._due)
        if not of_client:
            self._push_arrival(at)
        self._made += 1
        workload, random = self.workload, self._random
        prompt, output = workload.prompt.draw(random), workload.output.draw(random)
        shares = random.random() < workload.prefix_share and workload.prefix_tokens + prompt < self._max_model_len
        prompt = min(prompt + (workload.prefix_tokens if shares else 0), self._max_model_len - 1)
        output = min(output, self._max_model_len - prompt)
        cut = random.random() < workload.length_share
        return Request(
            identity=self._made,
            arrived_at=at,
            prompt_tokens=prompt,
            output_tokens=output,
            max_tokens=output if cut else workload.output.high,
            finish_reason="length" if cut else "stop",
            prefix=f"system prompt of {workload.prefix_tokens}" if shares and workload.prefix_tokens else None,
            prefix_tokens=workload.prefix_tokens if shares else 0,
            source=self._epoch if of_client else None,
        )

    def answered(self, request: Request, now: float) -> None:
        """A client got its answer, thinks, and asks again."""
        if request.source is self._epoch:
            think = self._random.expovariate(1 / self.workload.think_seconds) if self.workload.think_seconds else 0.0
            heapq.heappush(self._due, (now + think, True))

    def _push_arrival(self, now: float) -> None:
        if self.workload.arrivals_per_second > 0:
            heapq.heappush(self._due, (now + self._random.expovariate(self.workload.arrivals_per_second), False))
