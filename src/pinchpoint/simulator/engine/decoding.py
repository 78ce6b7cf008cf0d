"""Requests that decode, advanced all at once: a step costs the same for one of them as for a thousand.

All of them compute one token in every step. So what each has done follows from the step it joined at, when it ends and
when it needs a block is known beforehand, and sums over all of them grow by their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pinchpoint.simulator.engine.request import Request


class Decoders:
    """``begin`` counts a step as computed, ``end`` its tokens as generated; they join and are settled in between."""

    def __init__(self, block_size: int) -> None:
        self._block_size: Final = block_size
        self.count = 0
        self.context_tokens = 0  # computed tokens of all of them
        self.last_token_at = 0.0
        self.steps = 0
        self._in_flight = 0  # steps begun and not ended: 0 or 1
        self._ends: dict[int, dict[Request, None]] = {}  # by the step that makes their last token
        self._grow: list[dict[Request, None]] = [{} for _ in range(block_size)]  # by step modulo block size
        self.listened: dict[Request, None] = {}

    def join(self, request: Request) -> None:
        """It has all of its known tokens but the last computed."""
        request.joined_step = self.steps
        self.count += 1
        self.context_tokens += request.computed_tokens
        self._grow[(self.steps - request.computed_tokens) % self._block_size][request] = None
        self._ends.setdefault(self._last_step(request), {})[request] = None
        if request.on_token is not None:
            self.listened[request] = None

    def leave(self, request: Request) -> None:
        """Its counts are right afterwards; of a step in flight it has computed its token, and not generated it."""
        self._grow[(self.steps - self.computed_tokens(request)) % self._block_size].pop(request, None)
        ending = self._ends.get(self._last_step(request), {})
        ending.pop(request, None)
        if not ending:
            self._ends.pop(self._last_step(request), None)
        self.listened.pop(request, None)
        self.settle(request)
        request.joined_step = None
        self.count -= 1
        self.context_tokens -= request.computed_tokens

    def growing(self) -> tuple[Request, ...]:
        """Those that need one more block for the step that begins next, in the order in which they joined."""
        return tuple(self._grow[self.steps % self._block_size])

    def begin(self) -> None:
        self.steps += 1
        self._in_flight = 1
        self.context_tokens += self.count

    def end(self, now: float) -> Iterable[Request]:
        """The step has ended: those that have their last token."""
        self._in_flight = 0
        self.last_token_at = now
        return self._ends.pop(self.steps, ())

    def computed_tokens(self, request: Request) -> int:
        """As of now, the step in flight included."""
        return request.computed_tokens + (self.steps - request.joined_step if request.joined_step is not None else 0)

    def settle(self, request: Request) -> None:
        """Write its counts down as of now: between two steps, or as it leaves."""
        assert request.joined_step is not None
        computed = self.steps - request.joined_step
        generated = computed - self._in_flight
        request.computed_tokens += computed
        request.known_tokens += generated
        request.generated_tokens += generated
        request.last_token_at = self.last_token_at
        request.joined_step = self.steps

    @staticmethod
    def _last_step(request: Request) -> int:
        assert request.joined_step is not None
        return request.joined_step + request.output_tokens - request.generated_tokens
