"""A world with one thing made generous, and with everything else as it was: seed, arrivals, all that is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from pinchpoint.physics import Gpu
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.world import Fault, Gateway, Host, LostCard, Routing, Stall, Throttle, World

KV_BLOCKS, SLOTS, TOKEN_BUDGET, FLOPS, BANDWIDTH, LINKS, HOST_TIMES = 8, 16, 4, 4.0, 4.0, 4.0, 0.1
_MOST_RANKS = 8
_NVLINK = 600e9, 12  # bytes a second and links of a card that is given some: those of an A100


def relaxed(world: World, resource: str) -> tuple[World, ...]:
    """This world with ``resource`` made generous, in each way that there is, the most generous first; none where it
    is already.

    Raises ``KeyError`` where it is no resource of ``RESOURCES``.
    """
    return tuple(other for other in _RELAX[resource](world) if other != world)


def generous(world: World, *, but: str | None = None) -> World:
    """Everything made generous, ``but`` one resource."""
    for resource in RESOURCES:
        if resource != but:
            world = next(iter(relaxed(world, resource)), world)
    return world


def with_one_more_replica(world: World) -> World:
    """On healthy cards of its own, on the same host, behind the same balancer; a router by weights gives it the mean
    share."""
    weights = world.routing.weights
    mean = (sum(weights) / len(weights),) if weights else ()
    return replace(world, replicas=world.replicas + 1, routing=replace(world.routing, weights=(*weights, *mean)))


def with_tensor_parallel_doubled(world: World) -> World | None:
    """Each replica on twice the cards, of the same link. ``None`` where the model or the cards don't allow it."""
    spec, ranks = world.engine, 2 * world.engine.tensor_parallel_size
    heads = spec.model_config["num_attention_heads"]
    if spec.mig or ranks > _MOST_RANKS or not isinstance(heads, int) or heads % ranks:
        return None
    first = int(spec.gpus[0])
    try:
        engine = replace(spec, gpus=tuple(str(first + rank) for rank in range(ranks)))
    except ValueError:  # no such link between two of these cards
        return None
    return replace(world, engine=engine, faults=tuple(_moved(fault, first, ranks // 2) for fault in world.faults))


def _moved(fault: Fault, first: int, size: int) -> Fault:
    """On the same rank of the same replica, when each has twice as many cards as the ``size`` it had."""
    if isinstance(fault, Stall):
        return fault
    replica, rank = divmod(int(fault.gpu) - first, size)
    return replace(fault, gpu=str(first + replica * 2 * size + rank))


def _engine(world: World, spec: EngineSpec) -> World:
    return replace(world, engine=spec)


def _gpu(world: World, gpu: Gpu) -> World:
    return _engine(world, replace(world.engine, gpu=gpu))


def _kv_capacity(world: World) -> Iterator[World]:
    blocks = 1 + KV_BLOCKS * (world.engine.num_gpu_blocks - 1)
    yield _engine(world, replace(world.engine, num_gpu_blocks_override=blocks))


def _scheduler(world: World) -> Iterator[World]:
    """vLLM refuses more slots than tokens in its budget."""
    spec = world.engine
    slots, budget = SLOTS * spec.max_num_seqs, TOKEN_BUDGET * spec.max_num_batched_tokens
    yield _engine(world, replace(spec, max_num_seqs=min(slots, budget), max_num_batched_tokens=budget))
    yield _engine(world, replace(spec, max_num_seqs=min(slots, spec.max_num_batched_tokens)))
    yield _engine(world, replace(spec, max_num_batched_tokens=budget))


def _compute(world: World) -> Iterator[World]:
    gpu = world.engine.gpu
    fp8 = None if gpu.fp8_flops is None else FLOPS * gpu.fp8_flops
    yield _gpu(world, replace(gpu, bf16_flops=FLOPS * gpu.bf16_flops, fp8_flops=fp8))


def _memory_bandwidth(world: World) -> Iterator[World]:
    gpu = world.engine.gpu
    yield _gpu(world, replace(gpu, bandwidth_bytes_per_second=BANDWIDTH * gpu.bandwidth_bytes_per_second))


def _host_cpu(world: World) -> Iterator[World]:
    host = world.host
    yield replace(
        world,
        host=Host(
            cpu_count=1024,
            step_seconds=HOST_TIMES * host.step_seconds,
            request_seconds=HOST_TIMES * host.request_seconds,
            admission_seconds=HOST_TIMES * host.admission_seconds,
            frontend_cores=max(16, host.frontend_cores),
            other_cores=0.0,
        ),
    )


def _interconnect(world: World) -> Iterator[World]:
    """NVLink of all the card's links and more; a card that has none is given some. Nothing where there is one rank."""
    spec = world.engine
    if spec.tensor_parallel_size == 1:
        return
    bandwidth, links = (spec.gpu.nvlink_bytes_per_second, spec.gpu.nvlinks) if spec.gpu.nvlinks else _NVLINK
    assert bandwidth is not None
    gpu = replace(spec.gpu, nvlink_bytes_per_second=LINKS * bandwidth, nvlinks=links)
    yield _engine(world, replace(spec, gpu=gpu, link=f"NV{links}"))


def _network(world: World) -> Iterator[World]:
    yield replace(world, gateway=Gateway(delay_seconds=0.0, jitter_seconds=0.0, buffers=False))


def _hardware(world: World) -> Iterator[World]:
    yield _without(world, (Throttle, LostCard))


def _stalled(world: World) -> Iterator[World]:
    yield _without(world, (Stall,))


def _imbalance(world: World) -> Iterator[World]:
    if world.replicas > 1:
        yield replace(world, routing=Routing(policy="least_loaded"))


def _without(world: World, kinds: tuple[type, ...]) -> World:
    return replace(world, faults=tuple(fault for fault in world.faults if not isinstance(fault, kinds)))


_RELAX: Mapping[str, Callable[[World], Iterator[World]]] = {
    "kv_capacity": _kv_capacity,
    "compute": _compute,
    "memory_bandwidth": _memory_bandwidth,
    "scheduler": _scheduler,
    "host_cpu": _host_cpu,
    "interconnect": _interconnect,
    "network": _network,
    "hardware": _hardware,
    "imbalance": _imbalance,
    "stalled": _stalled,
}
# Whose relaxation is played again. Memory that a neighbour takes ends an engine later than anybody would play.
RESOURCES: tuple[str, ...] = tuple(_RELAX)
