"""For these tests: a small service that a few people use, and what was seen of one that was played."""

from pinchpoint.simulator import Lengths, Service, Workload, World
from pinchpoint.simulator.world import Probes
from tests.simulator.engine.small import small_spec

FEW = Workload(arrivals_per_second=4.0, prompt=Lengths(median=300), output=Lengths(median=60, high=200))
UNPROBED = Probes(every_seconds=0.0)


def small_world(seed=1, engine=None, **changes):
    """``engine`` changes its flags, everything else the world around it."""
    spec = small_spec(**{"max_model_len": 4096, "num_gpu_blocks_override": 2000, **(engine or {})})
    return World(**{"seed": seed, "engine": spec, "workload": FEW, "probes": UNPROBED, **changes})


def readings(service):
    return {reading.gpu: reading for reading in service.gpu_readings(0.0)}


def history(world, seconds, read):
    """``read(service)`` after each second."""
    service, seen = Service(world), []
    for second in range(1, seconds + 1):
        service.advance_to(second)
        seen.append(read(service))
    return seen
