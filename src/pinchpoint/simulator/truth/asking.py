"""Who might ask: the shapes of requests that services of different kinds get, drawn. How many, comes later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random

from pinchpoint.simulator.node.workload import Lengths, Workload
from pinchpoint.simulator.truth.rate import Expected, mean_request
from pinchpoint.snapshot import Slo


def _lengths(random: Random, low: float, high: float, most: int, least: int = 1) -> Lengths:
    median = random.uniform(low, high)
    return Lengths(median=median, sigma=random.uniform(0.25, 0.5), low=least, high=min(most, round(4 * median)))


def _chat(random: Random) -> Workload:
    return Workload(
        prompt=_lengths(random, 150, 900, 4000),
        output=_lengths(random, 120, 400, 1500),
        prefixes=random.choice((1, 1, 4)),
        prefix_tokens=random.choice((0, 200, 400, 800)),
        prefix_share=random.uniform(0.5, 0.95),
    )


def _rag(random: Random) -> Workload:
    return Workload(
        prompt=_lengths(random, 1500, 4000, 12000),
        output=_lengths(random, 80, 250, 800),
        prefix_tokens=random.choice((0, 512)),
        prefix_share=random.uniform(0.7, 1.0),
    )


def _agents(random: Random) -> Workload:
    return Workload(
        turns=random.randint(4, 10),
        prompt=_lengths(random, 150, 500, 1500),
        output=_lengths(random, 60, 200, 600),
        prefixes=random.randint(1, 6),
        prefix_tokens=random.choice((1024, 2048)),
        prefix_share=1.0,
    )


def _code(random: Random) -> Workload:
    return Workload(
        prompt=_lengths(random, 700, 2500, 8000),
        output=_lengths(random, 30, 150, 600),
        prefix_tokens=random.choice((0, 256)),
        prefix_share=random.uniform(0.3, 0.9),
    )


def _batch(random: Random) -> Workload:
    return Workload(prompt=_lengths(random, 300, 1200, 4000), output=_lengths(random, 300, 800, 2000))


def _summaries(random: Random) -> Workload:
    return Workload(prompt=_lengths(random, 3000, 6000, 14000), output=_lengths(random, 40, 160, 500))


_KINDS: Mapping[str, Callable[[Random], Workload]] = {
    "chat": _chat,
    "rag": _rag,
    "agents": _agents,
    "code": _code,
    "batch": _batch,
    "summaries": _summaries,
}
KINDS: tuple[str, ...] = tuple(_KINDS)


def requests_of(kind: str, random: Random) -> Workload:
    """One of ``KINDS``; nobody asks yet."""
    return _KINDS[kind](random)


def longest_request(workload: Workload) -> int:
    """Tokens of prompt and answer together; a talk goes on until most of the context is used, however long that is."""
    once = workload.prompt.high + workload.output.high
    mean = mean_request(workload)
    return workload.prefix_tokens + round(once + (workload.turns - 1) * 1.5 * mean.held_tokens / workload.turns)


def asked(workload: Workload, rate: float, at_most: Expected, slo: Slo, random: Random) -> Workload:
    """These requests, at about ``rate`` a second: by Poisson, in bursts, swinging, or from clients who wait.

    Those are as many as ask at that rate if they are answered as it is expected; beyond ``at_most``, just too late.
    """
    if workload.turns > 1 or random.random() < 0.3:
        think = random.choice((0.0, 1.0, 3.0, 8.0))
        load = min(1.0, rate / at_most.requests_per_second) ** 2
        ttft = at_most.ttft_seconds + load * max(0.0, slo.ttft_seconds - at_most.ttft_seconds)
        tpot = at_most.tpot_seconds + load * max(0.0, slo.tpot_seconds - at_most.tpot_seconds)
        lasts = ttft + mean_request(workload).output_tokens * tpot
        return replace(workload, clients=max(1, round(rate * (lasts + think))), think_seconds=think)
    manner = random.random()
    burstiness = random.uniform(1.3, 2.0) if manner < 0.2 else 1.0
    swing = random.uniform(0.05, 0.2) if 0.2 <= manner < 0.4 else 0.0
    period = random.choice((300.0, 3600.0, 86_400.0))
    return replace(
        workload, arrivals_per_second=rate, burstiness=burstiness, swing_ratio=swing, swing_period_seconds=period
    )
