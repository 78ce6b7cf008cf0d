"""Simulated engines in a process of their own, so that their CPU time is not the exporter's: prints their targets."""

import asyncio
import json
import sys
from dataclasses import asdict

from pinchpoint.simulator import SimulatedNode
from pinchpoint.sources.engine import EngineSettings


async def main(engines: int) -> None:
    """Serves so many engines, each on cards of its own, until stdin closes (its parent has ended)."""
    nodes: list[SimulatedNode] = []
    targets: list[dict[str, object]] = []
    cards = 0
    while len(targets) < engines:
        nodes.append(node := SimulatedNode(seed=len(nodes), scenario="healthy"))
        await node.start()
        for target in node.targets()[: engines - len(targets)]:
            told = asdict(target.facts).items()
            facts = {key: value for key, value in told if key in EngineSettings.model_fields and value is not None}
            gpus = [str(cards + rank) for rank in range(len(target.gpus))]
            cards += len(gpus)
            targets.append({"name": f"{target.engine}-{len(nodes)}", "url": target.url, "gpus": gpus, **facts})
    print(json.dumps(targets), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
