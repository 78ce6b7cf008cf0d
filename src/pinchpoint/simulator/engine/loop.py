"""One simulated engine: a discrete-event loop in virtual time, a step at a time.

Time is a number that only moves when ``run_until`` is called, so ten busy minutes take about a second, and a seed and
the same requests give the same run to the last token.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from math import inf
from random import Random

from pinchpoint.simulator.engine.batching import Batch, Batcher
from pinchpoint.simulator.engine.conditions import Conditions
from pinchpoint.simulator.engine.ledger import Ledger
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.engine.timing import StepTimer
from pinchpoint.simulator.engine.work import StepCost, Work
from pinchpoint.simulator.world import Host

_USUAL_HOST = Host()


class SimulatedEngine:
    """An engine process. Requests come by ``submit``, ills by ``conditions``; everything else looks."""

    def __init__(
        self, spec: EngineSpec, seed: int | str = 0, started_at: float = 0.0, host: Host = _USUAL_HOST
    ) -> None:
        self.spec = spec
        self.now = self.started_at = started_at
        self.conditions = Conditions()
        self.batcher = Batcher(spec)
        self.ledger = Ledger(spec.max_model_len)
        self._timer = StepTimer(spec, host, Random(f"{seed}/timing"))  # noqa: S311 - a seeded model
        self._work = Work()
        self._step: tuple[Batch, StepCost, float] | None = None  # in flight: what, its cost, its end
        self._arrivals: list[tuple[float, int, Request]] = []  # a heap, by time and then by order of submission
        self._submitted = 0
        self._shown = (0, 0, 0.0)

    @property
    def running(self) -> int:
        """The gauge, as are the next two: what the engine core told last, which a stalled one no longer does."""
        return self._gauges()[0]

    @property
    def waiting(self) -> int:
        return self._gauges()[1]

    @property
    def kv_usage_ratio(self) -> float:
        return self._gauges()[2]

    @property
    def open_requests(self) -> int:
        """Submitted and not yet answered or aborted, whatever the gauges say."""
        arriving = sum(not request.finished for _, _, request in self._arrivals)
        return len(self.batcher.running) + len(self.batcher.waiting) + arriving

    @property
    def next_event_at(self) -> float:
        """When something will happen without anybody's doing; infinity when nothing will."""
        if self._step is not None:
            return self._step[2]
        if not self._stands_still and (self.batcher.running or self.batcher.waiting):
            return self.now
        return self._arrivals[0][0] if self._arrivals else inf

    def work(self) -> Work:
        """Everything done until now, the step in flight in proportion."""
        if self._step is None:
            return replace(self._work)
        _, cost, ends_at = self._step
        return self._work.plus(cost, min(1.0, max(0.0, 1.0 - (ends_at - self.now) / cost.seconds)))

    def submit(self, request: Request) -> None:
        """It joins the queue when its front end is done with it: at ``queued_at``, or now if that is past.

        Raises ``ValueError`` when it is longer than ``max_model_len`` with its answer, which vLLM would not accept.
        """
        if request.prompt_tokens + request.output_tokens > self.spec.max_model_len:
            raise ValueError(f"request {request.identity} is longer than max_model_len {self.spec.max_model_len}")
        request.queued_at = max(self.now, request.queued_at)
        self._submitted += 1
        heapq.heappush(self._arrivals, (request.queued_at, self._submitted, request))
        self._queue()

    def abort(self, request: Request) -> None:
        """The client has gone. vLLM counts such a request nowhere but in its tokens; nor does this."""
        if not request.finished:
            request.finished = True
            self.batcher.leave(request)

    def run_until(self, until: float, stop_on_finish: bool = False) -> None:
        """Play everything that happens up to and including ``until``. A step may stay in flight.

        ``stop_on_finish`` returns, with ``now`` before ``until``, right after a step in which a request finished and
        before the next one is put together.
        """
        while self._step is None or self._step[2] <= until:
            if self._step is not None:
                finished = self._complete()
                self._queue()
                if finished and stop_on_finish:
                    self._show()
                    return
            if not self._stands_still:
                self._begin()
            if self._step is None:
                if not self._arrivals or self._arrivals[0][0] > until:
                    break
                self.now = self._arrivals[0][0]
                self._queue()
        self.now = max(self.now, until)
        self._queue()
        self._show()

    @property
    def _stands_still(self) -> bool:
        return self.conditions.stalled or self.conditions.asleep

    def _gauges(self) -> tuple[int, int, float]:
        if self._stands_still:
            return self._shown
        return len(self.batcher.running), len(self.batcher.waiting), self.batcher.pool.usage_ratio

    def _show(self) -> None:
        self._shown = self._gauges()

    def _queue(self) -> None:
        """Those whose time has come."""
        while self._arrivals and self._arrivals[0][0] <= self.now:
            request = heapq.heappop(self._arrivals)[2]
            if not request.finished:
                self.batcher.waiting.append(request)

    def _begin(self) -> None:
        batch = self.batcher.schedule(self.now)
        self.ledger.scheduled(batch)
        if batch.tokens:
            cost = self._timer.cost(batch, self.conditions, self.now)
            self._step = (batch, cost, self.now + cost.seconds)

    def _complete(self) -> bool:
        """The step in flight has ended: tokens come out, requests finish. Whether any did."""
        assert self._step is not None
        batch, cost, now = self._step
        self._step, self.now = None, now
        self._work.add(cost)
        ledger, decoders = self.ledger, self.batcher.decoders
        tokens = decoders.count
        if tokens:
            ledger.tokens(now - decoders.last_token_at, tokens)
        finished = list(decoders.end(now))
        listened = list(decoders.listened)
        for request in batch.prompts:
            if request.finished:
                continue  # aborted while the step ran
            tokens += self._prefilled(request, now)
            if request.generated_tokens == request.output_tokens:
                finished.append(request)
            if request.on_token is not None:
                listened.append(request)
        if tokens:
            ledger.iteration_tokens.observe(tokens)
        for request in finished:
            self._finish(request, now)
        self._tell(listened, finished, now)
        return bool(finished)

    def _prefilled(self, request: Request, now: float) -> int:
        """It has a token. Returns the tokens to count for the step: a prompt counts whole, when it has ended."""
        request.known_tokens += 1
        request.generated_tokens += 1
        tokens = 1
        if request.first_token_at is None:
            request.first_token_at = now
            self.ledger.first_token(request, now)
            tokens += request.prompt_tokens - request.cached_tokens
        else:  # it had been preempted
            self.ledger.tokens(now - request.last_token_at)
        request.last_token_at = now
        self.batcher.prefilled(request)
        return tokens

    def _finish(self, request: Request, now: float) -> None:
        request.finished = True
        self.batcher.finish(request)
        self.ledger.finished(request, now)

    def _tell(self, listened: list[Request], finished: list[Request], now: float) -> None:
        """Only when all books are right: who is told may submit and abort."""
        for request in listened:
            if request.joined_step is not None:
                self.batcher.decoders.settle(request)
        for request in listened:
            gone = request.finished and request.generated_tokens < request.output_tokens  # by another's doing, just now
            if request.on_token is not None and not gone:
                request.on_token(request)
        for request in finished:
            if request.on_finish is not None:
                request.on_finish(request, now)
