"""For these tests: an 8B model on one H100, its pool cut to what a test needs, requests, and what an engine counted."""

import asyncio
from random import Random

from pinchpoint.physics import GPUS, LLAMA_3_1_8B
from pinchpoint.simulator.engine.ledger import Tally
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec


def small_spec(**changes):
    known = {
        "name": "small",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "model_config": LLAMA_3_1_8B,
        "gpu": GPUS["NVIDIA H100 80GB HBM3"],
        "gpus": ("0",),
        "max_model_len": 1024,
        "num_gpu_blocks_override": 200,
    }
    return EngineSpec(**{**known, **changes})


def request(identity=1, prompt=100, output=10, **more):
    known = {"arrived_at": 0.0, "max_tokens": output, "finish_reason": "length"}
    return Request(identity=identity, prompt_tokens=prompt, output_tokens=output, **{**known, **more})


def crowd(number, per_second, seed=1, prompt=(50, 400), output=(1, 300), **more):
    """So many requests, at random times and of random lengths."""
    chance, at = Random(seed), 0.0
    for identity in range(number):
        at += chance.expovariate(per_second)
        yield request(identity, chance.randint(*prompt), chance.randint(*output), arrived_at=at, **more)


def told(ledger):
    """All that it has counted: exact numbers, and sums of seconds, which may differ in their last digits."""
    exact, sums = {}, {}
    for name, value in vars(ledger).items():
        if isinstance(value, Tally):
            exact[name], sums[name] = (value.count, tuple(value.counts)), value.sum
        else:
            exact[name] = value
    return exact, sums


async def until(condition, seconds=3.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
