"""One simulated engine: a discrete-event loop in virtual time, a step at a time.

Time is a number that only moves when ``run_until`` is called, so ten busy minutes take a second or two, and a seed
gives the same run to the last token.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random

from pinchpoint.simulator.engine.batching import Batch, Batcher
from pinchpoint.simulator.engine.ledger import Ledger
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.engine.timing import StepCost, StepTimer
from pinchpoint.simulator.node.workload import Traffic, Workload


@dataclass(slots=True)
class Work:
    """What one rank and its host have done since the start, summed."""

    gpu_seconds: float = 0.0
    flops: float = 0.0
    moved_bytes: float = 0.0
    host_cpu_seconds: float = 0.0

    def plus(self, cost: StepCost, share: float) -> Work:
        return Work(
            self.gpu_seconds + share * cost.gpu_seconds,
            self.flops + share * cost.flops,
            self.moved_bytes + share * cost.moved_bytes,
            self.host_cpu_seconds + share * cost.host_cpu_seconds,
        )

    def since(self, earlier: Work) -> Work:
        return Work(
            self.gpu_seconds - earlier.gpu_seconds,
            self.flops - earlier.flops,
            self.moved_bytes - earlier.moved_bytes,
            self.host_cpu_seconds - earlier.host_cpu_seconds,
        )


class SimulatedEngine:
    """An engine process. ``clock_ratio`` (1 = boost clock) is set from outside when its cards throttle."""

    def __init__(
        self, spec: EngineSpec, seed: int = 0, workload: Workload | None = None, started_at: float = 0.0
    ) -> None:
        self.spec = spec
        self.now = self.started_at = started_at
        self.clock_ratio = 1.0
        self.batcher = Batcher(spec)
        self.ledger = Ledger(spec.max_model_len)
        self._timer = StepTimer(spec, Random(f"{seed}/{spec.name}/timing"))  # noqa: S311 - a seeded model, no secret
        chance = Random(f"{seed}/{spec.name}/traffic")  # noqa: S311 - a seeded model, no secret
        self._traffic = Traffic(chance, workload or Workload(), spec.max_model_len, started_at)
        self._work = Work()
        self._step: tuple[Batch, StepCost, float] | None = None  # in flight: work, cost, start

    @property
    def running(self) -> int:
        return len(self.batcher.running)

    @property
    def waiting(self) -> int:
        return len(self.batcher.waiting)

    @property
    def next_event_at(self) -> float:
        """When something will happen without anybody's doing."""
        return self._step[2] + self._step[1].seconds if self._step else self._traffic.next_at

    def work(self) -> Work:
        """Everything done until now, the step in flight in proportion."""
        if self._step is None:
            return self._work
        _, cost, began = self._step
        return self._work.plus(cost, min(1.0, max(0.0, (self.now - began) / cost.seconds)))

    def use(self, workload: Workload) -> None:
        """Other traffic from now on: everybody of the old one hangs up. The same traffic just goes on."""
        if workload == self._traffic.workload:
            return
        self._traffic.use(workload, self.now)
        for request in [*self.batcher.running, *self.batcher.waiting]:
            if request.on_token is None:
                self.abort(request)

    def submit(self, request: Request) -> None:
        """A request from outside the simulated traffic joins the queue now."""
        self.batcher.waiting.append(request)

    def abort(self, request: Request) -> None:
        """The client has gone. vLLM counts such a request nowhere but in its tokens; nor does this."""
        request.finished = True
        self.batcher.leave(request)

    def run_until(self, until: float) -> None:
        """Play everything that happens up to and including ``until``. A step may stay in flight."""
        while True:
            if self._step is not None:
                if self.next_event_at > until:
                    break
                self._complete()
            while self._traffic.next_at <= self.now:
                self.batcher.waiting.append(self._traffic.pop())
            batch = self.batcher.schedule(self.now)
            self.ledger.scheduled(batch)
            if batch.work:
                self._step = (batch, self._timer.cost(batch, self.clock_ratio), self.now)
            elif self._traffic.next_at > until or self.now >= until:
                break
            else:
                self.now = self._traffic.next_at
        self.now = max(self.now, until)

    def _complete(self) -> None:
        """The step in flight has ended: tokens come out, requests finish."""
        assert self._step is not None
        batch, cost, began = self._step
        self._step = None
        self.now = now = began + cost.seconds
        self._work = self._work.plus(cost, 1.0)
        tokens, previous = 0, Counter[float]()
        for request, computed in batch.work:
            if request.finished:
                continue  # aborted while the step ran
            request.computed_tokens += computed
            if request.computed_tokens < request.known_tokens:
                continue  # a chunk of its prompt
            tokens += 1
            request.known_tokens += 1
            request.generated_tokens += 1
            if request.first_token_at is None:
                tokens += self._first_token(request, now)
            else:
                previous[request.last_token_at] += 1
            request.last_token_at = now
            if request.generated_tokens >= request.output_tokens:
                self._finish(request, now)
            if request.on_token is not None:
                request.on_token(request)
        self.ledger.generation_tokens += sum(previous.values())
        for at, times in previous.items():
            self.ledger.inter_token.observe(now - at, times)
        if tokens:
            self.ledger.iteration_tokens.observe(tokens)

    def _first_token(self, request: Request, now: float) -> int:
        """Returns the prompt tokens that were computed for it."""
        request.first_token_at = now
        self.ledger.first_token(request, now)
        self.ledger.generation_tokens += 1
        self.batcher.publish_prefix(request)
        return request.prompt_tokens - request.cached_tokens

    def _finish(self, request: Request, now: float) -> None:
        request.finished = True
        self.ledger.finished(request, now)
        self.batcher.leave(request)
        self._traffic.answered(request, now)
