"""What the clients saw: each request from when it was sent, through the gateway, to its last token."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.world import Gateway


@dataclass(frozen=True, slots=True)
class Sent:
    """A request on its way. ``refused``: nobody was there to take it. ``back_seconds`` is the way back."""

    sent_at: float
    request: Request
    replica: int
    back_seconds: float
    buffered: bool
    refused: bool = False

    @property
    def finished_at(self) -> float | None:
        """When the client had all of it; ``None``: it has not, or never will."""
        request = self.request
        done = request.finished and request.generated_tokens == request.output_tokens
        return request.last_token_at + self.back_seconds if done else None

    @property
    def ttft_seconds(self) -> float | None:
        """As the client measures it: a gateway that buffers gives the first token with the last."""
        if self.buffered:
            return None if self.finished_at is None else self.finished_at - self.sent_at
        first = self.request.first_token_at
        return None if first is None else first + self.back_seconds - self.sent_at

    @property
    def tpot_seconds(self) -> float | None:
        """The mean time per output token after the first; ``None`` of a short answer or an unfinished one."""
        request = self.request
        if self.finished_at is None or request.first_token_at is None or request.generated_tokens < 2:
            return None
        if self.buffered:
            return 0.0
        return (request.last_token_at - request.first_token_at) / (request.generated_tokens - 1)


class Way:
    """The gateway: how long a request takes on its way in."""

    def __init__(self, gateway: Gateway, random: Random) -> None:
        self._gateway, self._random = gateway, random

    def seconds(self) -> float:
        """One number is drawn for each request, whatever the gateway."""
        return self._gateway.delay_seconds + self._gateway.jitter_seconds * self._random.random()
