"""For these tests: an 8B model on one H100, its pool cut to what a test needs, and waiting for real time to pass."""

import asyncio

from pinchpoint.physics import GPUS, LLAMA_3_1_8B
from pinchpoint.simulator import EngineSpec


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


async def until(condition, seconds=3.0):
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.002)
