"""Continuous batching as vLLM V1 does it: who computes how many tokens in the next step.

Running requests come first, in order of admission; what is left of the token budget goes to the waiting queue, first
come first served, prompts in chunks. When blocks run out the youngest running request is preempted: it loses all that
it has computed and goes to the head of the queue (recompute). After a preemption nobody is admitted in the same step.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from pinchpoint.simulator.engine.blocks import BlockPool
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec


@dataclass(slots=True)
class Batch:
    """One step's work, and the sums that its duration depends on."""

    work: list[tuple[Request, int]] = field(default_factory=list)
    tokens: int = 0
    attention_pairs: float = 0.0  # (query, key) pairs
    kv_tokens_read: int = 0
    admitted: list[Request] = field(default_factory=list)
    preemptions: int = 0

    def add(self, request: Request, tokens: int) -> None:
        context = request.computed_tokens + tokens
        self.work.append((request, tokens))
        self.tokens += tokens
        self.kv_tokens_read += context
        self.attention_pairs += tokens * (context - (tokens - 1) / 2)


class Batcher:
    """The queue, the running list and the block pool of one engine."""

    def __init__(self, spec: EngineSpec) -> None:
        self.max_num_seqs = spec.max_num_seqs
        self.max_num_batched_tokens = spec.max_num_batched_tokens
        self.block_size = spec.block_size
        self.pool = BlockPool(spec.num_gpu_blocks)
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def schedule(self, now: float) -> Batch:
        """The next step. Empty when there is nothing to do."""
        batch = Batch()
        index = 0
        while index < len(self.running) and (budget := self.max_num_batched_tokens - batch.tokens) > 0:
            request = self.running[index]
            tokens = min(request.known_tokens - request.computed_tokens, budget)
            if request.computed_tokens + tokens > request.room_tokens and not self._grow(request, tokens, batch):
                break  # it was the youngest itself, so nobody runs behind it
            batch.add(request, tokens)
            index += 1
        while not batch.preemptions and self.waiting and len(self.running) < self.max_num_seqs:
            budget = self.max_num_batched_tokens - batch.tokens
            if budget <= 0 or not self._admit(self.waiting[0], budget, now, batch):
                break
            self.running.append(self.waiting.popleft())
        return batch

    def leave(self, request: Request) -> None:
        """Take a finished or aborted request out, with its blocks. Nothing happens when it is not here."""
        if request in self.running:
            self.running.remove(request)
            self._release(request)
        elif request in self.waiting:
            self.waiting.remove(request)

    def publish_prefix(self, request: Request) -> None:
        """Its prefill is done: leave the shared part of its prompt in the cache for others."""
        blocks = request.prefix_tokens // self.block_size
        if request.prefix is None or request.holds_prefix or blocks == 0:
            return
        if self.pool.publish(request.prefix, blocks):
            request.own_blocks -= blocks
            request.holds_prefix = True

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _grow(self, request: Request, tokens: int, batch: Batch) -> bool:
        """Blocks for ``tokens`` more of a running request, at the cost of the youngest; False if that is itself."""
        missing = self._blocks(request.computed_tokens + tokens - request.room_tokens)
        while not self.pool.allocate(missing):
            victim = self.running.pop()
            self._release(victim)
            victim.preemptions += 1
            batch.preemptions += 1
            self.waiting.appendleft(victim)
            if victim is request:
                return False
        request.own_blocks += missing
        request.room_tokens += missing * self.block_size
        return True

    def _admit(self, request: Request, budget: int, now: float, batch: Batch) -> bool:
        cached = self.pool.cached_blocks(request.prefix) if request.prefix is not None else 0
        # A full hit still computes the last prompt token: it yields the first output.
        found = min(cached * self.block_size, request.known_tokens - 1)
        tokens = min(request.known_tokens - found, budget)
        blocks = self._blocks(found + tokens) - cached
        if not self.pool.allocate(blocks, request.prefix if cached else None):
            return False
        request.computed_tokens, request.holds_prefix = found, cached > 0
        request.own_blocks, request.room_tokens = blocks, (blocks + cached) * self.block_size
        if request.scheduled_at is None:
            request.scheduled_at, request.cached_tokens = now, found
            batch.admitted.append(request)
        batch.add(request, tokens)
        return True

    def _release(self, request: Request) -> None:
        self.pool.release(request.own_blocks, request.prefix if request.holds_prefix else None)
        request.own_blocks = request.room_tokens = request.computed_tokens = 0
        request.holds_prefix = False
