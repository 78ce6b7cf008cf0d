"""Simulated engines in a process of their own, so that their CPU time is not the exporter's: prints their targets."""

import asyncio
import json
import sys
from dataclasses import asdict

from pinchpoint.simulator import SimulatedNode
from pinchpoint.sources.engine import EngineSettings


async def main(nodes: int) -> None:
    """Serves two engines per node, on GPUs 0 to 3 of its own, until stdin closes (its parent has ended)."""
    targets = []
    for number in range(nodes):
        node = SimulatedNode(seed=number, scenario="healthy")
        await node.start()
        for target in node.targets():
            told = asdict(target.facts).items()
            facts = {key: value for key, value in told if key in EngineSettings.model_fields and value is not None}
            gpus = [str(int(gpu) + 4 * number) for gpu in target.gpus]
            targets.append({"name": f"{target.engine}-{number}", "url": target.url, "gpus": gpus, **facts})
    print(json.dumps(targets), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
