"""One request on its way through the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False, kw_only=True)
class Request:
    """What was asked for, and how far it is. ``output_tokens`` is drawn beforehand: the model is not simulated.

    ``known_tokens`` (prompt and generated so far) less ``computed_tokens`` is the work left before its next token: 1 in
    decode, more in prefill and after a preemption, which throws all computed tokens away.
    """

    identity: int
    arrived_at: float
    prompt_tokens: int
    output_tokens: int
    max_tokens: int
    finish_reason: str = "stop"
    prefix: str | None = None  # name of a prompt prefix that other requests share
    prefix_tokens: int = 0
    source: object = None  # who sent it, for the traffic model
    on_token: Callable[[Request], None] | None = None  # called as each token is ready, also for the last

    known_tokens: int = field(init=False)
    computed_tokens: int = 0
    generated_tokens: int = 0
    cached_tokens: int = 0  # prompt tokens found in the prefix cache at first admission
    own_blocks: int = 0
    room_tokens: int = 0  # tokens that the held blocks (own and shared) can take
    holds_prefix: bool = False
    preemptions: int = 0
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float = 0.0
    finished: bool = False

    def __post_init__(self) -> None:
        self.known_tokens = self.prompt_tokens
