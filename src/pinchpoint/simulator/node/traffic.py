"""The requests of a service's outside world, in time order.

Open arrivals are drawn from one stream and each client from its own, so that the same questions are asked at the same
times whatever is done about them: a run with more of something is compared with the run without.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf, pi, sin
from random import Random

from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.node.workload import Workload

_RETRY_SECONDS = 1.0


@dataclass(slots=True, eq=False)
class _Client:
    name: str
    random: Random
    epoch: object
    turn: int = 0
    talk: int = 0  # counts conversations
    talk_tokens: int = 0  # of the one that goes on


@dataclass(slots=True, order=True)
class _Due:
    at: float
    order: int
    client: _Client | None = field(compare=False)


class Traffic:
    """``pop`` the request of ``next_at``; tell ``answered`` when a client has its answer."""

    def __init__(self, seed: str, workload: Workload, max_model_len: int, now: float = 0.0) -> None:
        self._seed, self._max_model_len = seed, max_model_len
        self._made = self._epochs = 0
        self.use(workload, now)

    def use(self, workload: Workload, now: float) -> None:
        """A different world from ``now`` on: clients of the old one ask no more."""
        self.workload, self._began = workload, now
        self._epochs += 1
        self._epoch = object()
        self._open = Random(f"{self._seed}/{self._epochs}/open")  # noqa: S311 - a seeded model, no secret
        self._due: list[_Due] = []
        for number in range(workload.clients):
            name = f"client {self._epochs}.{number}"
            random = Random(f"{self._seed}/{name}")  # noqa: S311 - a seeded model, no secret
            self._push(now + random.uniform(0.0, workload.ramp_seconds), _Client(name, random, self._epoch))
        self._push_arrival(now)

    @property
    def next_at(self) -> float:
        """When the next request is sent; infinity when none will by itself."""
        return self._due[0].at if self._due else inf

    def pop(self) -> Request:
        """The request that is sent at ``next_at``."""
        due = heapq.heappop(self._due)
        self._made += 1
        if due.client is None:
            request = self._request(self._open, due.at)
            self._push_arrival(due.at)
            return request
        return self._next_turn(due.client, due.at)

    def answered(self, request: Request, now: float) -> None:
        """A client has its answer, thinks, and asks again. Nothing happens for others."""
        client = request.source
        if not isinstance(client, _Client) or client.epoch is not self._epoch:
            return
        client.turn += 1
        client.talk_tokens = request.prompt_tokens + request.generated_tokens
        if client.turn >= self.workload.turns or client.talk_tokens > 0.8 * self._max_model_len:
            client.turn = client.talk_tokens = 0
            client.talk += 1
        think = self.workload.think_seconds
        self._push(now + (client.random.expovariate(1 / think) if think else 0.0), client)

    def failed(self, request: Request, now: float) -> None:
        """Nobody took it, or its server ended: its client asks for something else a second later."""
        client = request.source
        if isinstance(client, _Client) and client.epoch is self._epoch:
            self._push(now + _RETRY_SECONDS, client)

    def _push(self, at: float, client: _Client | None) -> None:
        self._made += 1
        heapq.heappush(self._due, _Due(at, self._made, client))

    def _push_arrival(self, now: float) -> None:
        """The next open arrival; those of a swinging rate are thinned from its highest (Lewis and Shedler 1979)."""
        workload, random = self.workload, self._open
        if workload.arrivals_per_second <= 0:
            return
        highest = workload.arrivals_per_second * (1.0 + workload.swing_ratio)
        shape = workload.burstiness**-2
        at = now
        while True:
            at += random.gammavariate(shape, 1.0 / (highest * shape))
            phase = 2 * pi * (at - self._began) / workload.swing_period_seconds
            if random.random() * highest <= workload.arrivals_per_second * (1 + workload.swing_ratio * sin(phase)):
                self._push(at, None)
                return

    def _next_turn(self, client: _Client, at: float) -> Request:
        request = self._request(client.random, at, client.talk_tokens)
        request.source = client
        if self.workload.turns > 1:  # all of it may be found by the next turn
            request.prefix = f"{client.name}, talk {client.talk}"
            request.prefix_tokens = request.prompt_tokens + request.output_tokens
        return request

    def _request(self, random: Random, at: float, before: int = 0) -> Request:
        workload = self.workload
        prompt, output = workload.prompt.draw(random), workload.output.draw(random)
        shares, which = random.random() < workload.prefix_share, random.randrange(workload.prefixes)
        cut = random.random() < workload.length_share
        prefix = workload.prefix_tokens if shares and not before else 0
        if prefix + prompt >= self._max_model_len:
            prefix = 0
        prompt = min(before + prefix + prompt, self._max_model_len - 1)
        output = min(output, self._max_model_len - prompt)
        return Request(
            identity=self._made,
            arrived_at=at,
            prompt_tokens=prompt,
            output_tokens=output,
            max_tokens=output if cut else workload.output.high,
            finish_reason="length" if cut else "stop",
            prefix=f"system prompt {which} of {prefix}" if prefix else None,
            prefix_tokens=prefix,
        )
