"""One request on its way through the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """What was asked for, and how far it is. ``output_tokens`` is drawn beforehand: the model is not simulated.

    ``arrived_at`` is when the API server got it, ``queued_at`` when its front end was done with it and the engine core
    has it: TTFT counts from the first, queue time from the second. Requests that name the same ``prefix`` have their
    first tokens in common, each as many as its own ``prefix_tokens``; of a chat that goes on these may reach into the
    answer.

    ``known_tokens`` (prompt and generated so far) less ``computed_tokens`` is what is left to compute before its next
    token: 1 in decode, more in prefill and after a preemption, which throws all computed tokens away. While a request
    decodes and nobody listens to its tokens, its counts stand still at those of ``joined_step`` (see ``Decoders``);
    they are right again when it has ended.
    """

    identity: int
    arrived_at: float
    prompt_tokens: int
    output_tokens: int
    max_tokens: int
    queued_at: float = 0.0  # never before it arrived
    finish_reason: str = "stop"
    prefix: str | None = None
    prefix_tokens: int = 0
    source: object = None  # who sent it; the engine doesn't look at it
    on_token: Callable[[Request], None] | None = None  # as each token is ready, also for the last
    on_finish: Callable[[Request, float], None] | None = None  # with the time of its last token; not when aborted

    known_tokens: int = field(init=False)
    computed_tokens: int = 0  # the step in flight included
    generated_tokens: int = 0
    cached_tokens: int = 0  # prompt tokens found in the prefix cache at first admission
    shared_blocks: int = 0  # of its blocks, those of the shared prefix
    joined_step: int | None = None  # the engine's count of steps when it began to decode; None: it doesn't
    preemptions: int = 0
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float = 0.0
    finished: bool = False  # answered or aborted

    def __post_init__(self) -> None:
        self.known_tokens = self.prompt_tokens
        self.queued_at = max(self.queued_at, self.arrived_at)
