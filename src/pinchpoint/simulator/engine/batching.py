"""Continuous batching as vLLM V1 does it: who computes how many tokens in the next step.

Running requests come first, in order of admission; what is left of the token budget goes to the waiting queue, first
come first served, prompts in chunks. When blocks run out the youngest running request is preempted: it loses all that
it has computed and goes to the head of the queue (recompute). After a preemption nobody is admitted in the same step.

A prompt is cut only where the budget ends, and then nobody is admitted behind it: so of the running requests at most
one is in prefill, and it is the youngest. All others decode, one token each, which the budget always has room for, and
began to decode in the order of their admission.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pinchpoint.simulator.engine.blocks import BlockPool
from pinchpoint.simulator.engine.decoding import Decoders
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec


@dataclass(slots=True)
class Batch:
    """One step's work, as the sums that its duration depends on, and the ``prompts`` whose prefill it ends."""

    requests: int = 0
    tokens: int = 0
    attention_pairs: float = 0.0  # (query, key) pairs
    kv_tokens_read: int = 0
    prompts: list[Request] = field(default_factory=list)
    preemptions: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0

    def add(self, context: int, tokens: int) -> None:
        """The last ``tokens`` of a context of one request."""
        self.requests += 1
        self.tokens += tokens
        self.kv_tokens_read += context
        self.attention_pairs += tokens * (context - (tokens - 1) / 2)


class Batcher:
    """The queue, the running requests and the block pool of one engine."""

    def __init__(self, spec: EngineSpec) -> None:
        self.max_num_seqs = spec.max_num_seqs
        self.max_num_batched_tokens = spec.max_num_batched_tokens
        self.block_size = spec.block_size
        self.state_blocks = spec.state_blocks_per_request
        self._caches_prefixes = spec.enable_prefix_caching
        self.pool = BlockPool(spec.num_gpu_blocks)
        self.waiting: deque[Request] = deque()
        self.running: dict[Request, None] = {}  # in order of admission
        self.decoders = Decoders(spec.block_size)
        self._in_prefill: Request | None = None  # the one whose prompt is cut

    def schedule(self, now: float) -> Batch:
        """The next step. It has no tokens when there is nothing to do."""
        batch, decoders = Batch(), self.decoders
        self._grow_decoders(batch)
        if decoders.count:
            decoders.begin()
            batch.requests = batch.tokens = decoders.count
            batch.kv_tokens_read = decoders.context_tokens
            batch.attention_pairs = float(decoders.context_tokens)
        if self._in_prefill is not None:
            self._go_on(self._in_prefill, batch)
        while self.waiting and not batch.preemptions and len(self.running) < self.max_num_seqs:
            budget = self.max_num_batched_tokens - batch.tokens
            if budget <= 0 or not self._admit(self.waiting[0], budget, now, batch):
                break
            self.waiting.popleft()
        return batch

    def prefilled(self, request: Request) -> None:
        """All that it knew is computed and it has a token more: it decodes from now on, unless that was its last."""
        self._share_prefix(request)
        if request.generated_tokens < request.output_tokens:
            self.decoders.join(request)

    def finish(self, request: Request) -> None:
        """It has its last token. Its counts are right afterwards."""
        if request.joined_step is not None:
            self.decoders.leave(request)
        self._share_prefix(request)
        self.leave(request)

    def leave(self, request: Request) -> None:
        """Take a finished or aborted request out, with its blocks. Nothing happens when it is not here."""
        if request in self.running:
            del self.running[request]
            self._release(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def own_blocks(self, request: Request) -> int:
        """What it holds for itself alone: for its tokens in whole blocks, and for recurrent state."""
        return self._blocks(self.decoders.computed_tokens(request)) + self.state_blocks - request.shared_blocks

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _grow_decoders(self, batch: Batch) -> None:
        """A block for each that begins one, in order of admission, at the cost of the youngest."""
        growing = self.decoders.growing()
        if not growing or self.pool.allocate(len(growing)):
            return
        for request in growing:
            while request in self.running and not self.pool.allocate(1):
                self._preempt_youngest(batch)

    def _go_on(self, request: Request, batch: Batch) -> None:
        """The next chunk of a prompt that was cut."""
        left = request.known_tokens - request.computed_tokens
        context = request.computed_tokens + min(left, self.max_num_batched_tokens - batch.tokens)
        if self.pool.allocate(self._blocks(context) - self._blocks(request.computed_tokens)):
            self._compute(request, context, batch)
        else:
            self._preempt_youngest(batch)  # which is itself

    def _admit(self, request: Request, budget: int, now: float, batch: Batch) -> bool:
        cached = 0
        if request.prefix is not None and self._caches_prefixes:
            # The last prompt token is computed in any case: it yields the first output.
            most = min(request.prefix_tokens, request.known_tokens - 1) // self.block_size
            cached = min(self.pool.cached_blocks(request.prefix), most)
        found = cached * self.block_size
        context = min(request.known_tokens, found + budget)
        blocks = self._blocks(context) - cached + self.state_blocks
        if not self.pool.allocate(blocks, request.prefix if cached else None):
            return False
        request.computed_tokens, request.shared_blocks = found, cached
        self.running[request] = None
        if request.scheduled_at is None:
            request.scheduled_at, request.cached_tokens = now, found
            if self._caches_prefixes:
                batch.prefix_queries += request.prompt_tokens
                batch.prefix_hits += found
        self._compute(request, context, batch)
        return True

    def _compute(self, request: Request, context: int, batch: Batch) -> None:
        """Its prompt up to ``context`` is part of the step."""
        batch.add(context, context - request.computed_tokens)
        request.computed_tokens = context
        if context == request.known_tokens:
            self._in_prefill = None
            batch.prompts.append(request)
        else:
            self._in_prefill = request

    def _preempt_youngest(self, batch: Batch) -> None:
        victim, _ = self.running.popitem()
        self._release(victim)
        victim.preemptions += 1
        batch.preemptions += 1
        self.waiting.appendleft(victim)

    def _release(self, request: Request) -> None:
        if request.joined_step is not None:
            self.decoders.leave(request)
        if request is self._in_prefill:
            self._in_prefill = None
        self.pool.release(self.own_blocks(request), request.prefix if request.shared_blocks else None)
        request.computed_tokens = request.shared_blocks = 0

    def _share_prefix(self, request: Request) -> None:
        """Leave the shared part of what it has computed in the cache for others."""
        blocks = min(request.prefix_tokens, request.computed_tokens) // self.block_size
        if request.prefix is not None and self._caches_prefixes and blocks > request.shared_blocks:
            request.shared_blocks += self.pool.publish(request.prefix, blocks, referenced=request.shared_blocks > 0)
