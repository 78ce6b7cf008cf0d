"""A node that is not there: engines that batch as vLLM does, behind real HTTP, on simulated GPUs and a simulated host.

It emits what a real node shows (``/metrics``, the API, GPU and host readings) and keeps to itself why: efficiencies,
overheads and noise come from a seed. Time is virtual (``SimulatedMachine``, ``write_recording``) or real
(``SimulatedNode``).

Is not: a judge by itself, and not a model of any model: the text is filler. It never sees the diagnosis that is judged
by it.
"""

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.node.machine import SimulatedMachine
from pinchpoint.simulator.node.recording import write_recording
from pinchpoint.simulator.node.service import Service, play
from pinchpoint.simulator.node.workload import Lengths, Workload
from pinchpoint.simulator.scenarios import SCENARIOS, Scenario, world_of
from pinchpoint.simulator.serving.exposition import render
from pinchpoint.simulator.serving.paced import SimulatedNode
from pinchpoint.simulator.serving.server import EngineServer
from pinchpoint.simulator.serving.threaded import ThreadedNode
from pinchpoint.simulator.world import World

__all__ = [
    "SCENARIOS",
    "EngineServer",
    "EngineSpec",
    "Lengths",
    "Scenario",
    "Service",
    "SimulatedEngine",
    "SimulatedMachine",
    "SimulatedNode",
    "ThreadedNode",
    "Workload",
    "World",
    "play",
    "render",
    "world_of",
    "write_recording",
]
