"""What might be wrong: one function for each intention. An intention is no label: at this severity, under this load, on
these cards it may cost nothing, or something else may cost more. Only playing tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import exp, log
from random import Random

from pinchpoint.simulator.truth.asking import KINDS, asked, requests_of
from pinchpoint.simulator.truth.machines import engine_for, most_replicas, with_kv_tokens
from pinchpoint.simulator.truth.outcome import SECONDS, WARM_UP_SECONDS
from pinchpoint.simulator.truth.rate import cores_wanted, expected, mean_request
from pinchpoint.simulator.truth.relax import relaxed
from pinchpoint.simulator.world import Fault, Gateway, Leak, LostCard, Probes, Routing, Stall, Throttle, World
from pinchpoint.snapshot import Slo, ThrottleReason

_TTFT_OBJECTIVES = (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
_SHORTEST_TTFT_SECONDS = 0.25  # nobody promises less
_TPOT_OBJECTIVES = (0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1)


class UnfitError(Exception):
    """What was drawn makes no world worth playing; draw again."""


def ordinary(random: Random, kinds: tuple[str, ...] = KINDS, **engine: object) -> World:
    """A service that could be healthy, whom nobody asks yet, with objectives that it can meet."""
    workload = requests_of(random.choice(kinds), random)
    spec = next((s for s in (engine_for(workload, random, **engine) for _ in range(60)) if s), None)  # type: ignore[arg-type]
    if spec is None:
        raise UnfitError
    replicas = min(random.choice((1, 1, 1, 2, 2, 4)), most_replicas(spec))
    probes = Probes(every_seconds=random.choice((0.0, 10.0, 15.0, 15.0, 20.0)))
    routing = Routing(policy=random.choice(("least_loaded", "least_loaded", "round_robin")))
    return World(
        seed=random.getrandbits(32), engine=spec, workload=workload, replicas=replicas, probes=probes, routing=routing
    )


def promised(world: World, random: Random) -> World:
    """With objectives that it meets with some room."""
    alone = expected(replace(world, slo=Slo(ttft_seconds=60.0, tpot_seconds=1.0)))
    ttft = [objective for objective in _TTFT_OBJECTIVES if objective >= 4.0 * alone.ttft_seconds]
    tpot = [objective for objective in _TPOT_OBJECTIVES if objective >= 1.5 * alone.tpot_seconds]
    if not ttft or not tpot:
        raise UnfitError
    return replace(world, slo=Slo(ttft_seconds=random.choice(ttft[:3]), tpot_seconds=random.choice(tpot[:3])))


def loaded(world: World, rate: float, random: Random) -> World:
    return replace(world, workload=asked(world.workload, rate, expected(world), world.slo, random))


def between(pinched: World, free: World, random: Random, most: float = 2.5) -> World:
    """Loaded with more than the pinched world manages, up to ``most`` times that, and with less than the free one does;
    now and then with less than either. Raises ``UnfitError`` where there is nothing between them."""
    narrow, wide = expected(pinched).requests_per_second, expected(free).requests_per_second
    chance = random.random()
    if chance < 0.1:
        rate = narrow * random.uniform(0.3, 0.75)
    elif chance < 0.2:
        rate = narrow * random.uniform(0.85, 1.2)
    else:
        low, high = 1.2 * narrow, min(0.85 * wide, most * narrow)
        if low > high:
            raise UnfitError
        rate = exp(random.uniform(log(low), log(high)))
    return loaded(pinched, rate, random)


def lightly(world: World, random: Random, low: float = 0.15, high: float = 0.6) -> World:
    return loaded(world, expected(world).requests_per_second * random.uniform(low, high), random)


def healthy(random: Random) -> World:
    world = promised(ordinary(random), random)
    if random.random() < 0.25:
        return _full_but_fine(world, random)
    return lightly(world, random, 0.1, 0.8)


def _full_but_fine(world: World, random: Random) -> World:
    """A KV cache that is nearly full, and nobody waits for it: as many clients as it holds."""
    per_replica = random.randint(8, 24)
    tokens = per_replica * mean_request(world.workload).held_tokens * random.uniform(1.25, 1.5)
    world = replace(world, engine=with_kv_tokens(world.engine, tokens))
    clients = per_replica * world.replicas
    return replace(world, workload=replace(world.workload, clients=clients, think_seconds=random.choice((0.0, 0.5))))


def kv_capacity(random: Random) -> World:
    world = promised(ordinary(random, ("chat", "batch", "rag", "code", "agents")), random)
    held = mean_request(world.workload).held_tokens
    few = with_kv_tokens(world.engine, held * exp(random.uniform(log(3), log(16))))
    return between(replace(world, engine=few), world, random, most=6.0)


def scheduler(random: Random) -> World:
    world = promised(ordinary(random, ("chat", "batch", "code", "rag")), random)
    if random.random() < 0.75:
        slots = random.choice((2, 4, 8, 8, 16, 16, 24, 32))
        few = replace(world.engine, max_num_seqs=slots)
    else:
        slots = random.choice((32, 64, 128))
        few = replace(world.engine, max_num_seqs=slots, max_num_batched_tokens=random.choice((128, 256, 512)))
    return between(replace(world, engine=few), world, random, most=6.0)


def compute(random: Random) -> World:
    world = promised(ordinary(random, ("summaries", "rag", "code", "summaries")), random)
    if random.random() < 0.25:  # a single prompt takes longer than was promised
        alone = expected(world).ttft_seconds
        slo = replace(world.slo, ttft_seconds=round(alone * random.uniform(0.5, 1.2), 2))
        if slo.ttft_seconds < _SHORTEST_TTFT_SECONDS:
            raise UnfitError
        return lightly(replace(world, slo=slo), random, 0.1, 0.3)
    return _with_more_of("compute", world, random)


def memory_bandwidth(random: Random) -> World:
    world = promised(ordinary(random, ("chat", "batch", "batch", "agents")), random)
    if random.random() < 0.5:  # as fast as this card goes, and promised faster
        alone = expected(world).tpot_seconds
        slo = replace(world.slo, tpot_seconds=round(alone * random.uniform(0.5, 1.05), 4))
        if expected(relaxed(world, "memory_bandwidth")[0]).tpot_seconds > 0.8 * slo.tpot_seconds:
            raise UnfitError
        return replace(lightly(world, random, 0.1, 0.4), slo=slo)
    return _with_more_of("memory_bandwidth", world, random)


def _with_more_of(resource: str, world: World, random: Random) -> World:
    return between(world, relaxed(world, resource)[0], random)


def host_cpu(random: Random) -> World:
    free = promised(ordinary(random), random)
    host, kind = free.host, random.random()
    if kind < 0.3:
        host = replace(host, step_seconds=exp(random.uniform(log(0.006), log(0.05))))
    elif kind < 0.55:
        host = replace(host, quota_cores=round(cores_wanted(free) * random.uniform(0.25, 0.95), 1))
    elif kind < 0.8:
        host = replace(host, admission_seconds=exp(random.uniform(log(0.05), log(0.8))))
    else:
        cores = random.choice((2, 4, 8))
        host = replace(host, cpu_count=cores, other_cores=round(random.uniform(0.1, 0.6) * cores, 1))
    return between(replace(free, host=host), free, random)


def interconnect(random: Random) -> World:
    world = ordinary(random, ("chat", "rag", "summaries", "code", "summaries"), ranks=(2, 4, 4, 8), linked=False)
    free = promised(relaxed(world, "interconnect")[0], random)
    return between(replace(world, slo=free.slo), free, random)


def network(random: Random) -> World:
    world = promised(ordinary(random), random)
    world = lightly(world, random)
    if not world.probes.every_seconds:  # nobody could know
        world = replace(world, probes=Probes())
    slo = world.slo.ttft_seconds
    if random.random() < 0.4:
        return replace(world, gateway=Gateway(delay_seconds=random.uniform(0.002, 0.1), buffers=True))
    delay = slo * random.uniform(0.3, 1.8)
    return replace(world, gateway=Gateway(delay_seconds=delay, jitter_seconds=slo * random.uniform(0.02, 0.5)))


def hardware(random: Random) -> World:
    world = promised(ordinary(random, whole=True), random)
    gpu = random.choice(_cards(world))
    if random.random() < 0.15:
        lost = LostCard(gpu=gpu, at=WARM_UP_SECONDS + random.uniform(-10.0, 0.3 * SECONDS))
        return replace(lightly(world, random, 0.2, 0.7), faults=(lost,))
    ill = replace(world, faults=(_throttled(gpu, random.uniform(0.2, 0.7), random),))
    return between(ill, world, random)


def _throttled(gpu: str, clock: float, random: Random) -> Throttle:
    reasons = random.choice(
        (
            (ThrottleReason.HW_SLOWDOWN, ThrottleReason.HW_THERMAL_SLOWDOWN),
            (ThrottleReason.SW_THERMAL_SLOWDOWN,),
            (ThrottleReason.HW_SLOWDOWN, ThrottleReason.HW_POWER_BRAKE),
        )
    )
    hot = ThrottleReason.HW_POWER_BRAKE not in reasons
    return Throttle(
        gpu=gpu, clock_ratio=clock, temperature_celsius=random.uniform(84, 93) if hot else 60.0, reasons=reasons
    )


def imbalance(random: Random) -> World:
    world = promised(ordinary(random, ranks=(1, 1, 2, 4), whole=True), random)
    replicas = random.randint(2, min(4, most_replicas(world.engine)))
    free = replace(world, replicas=replicas, routing=Routing(policy="least_loaded"))
    others = tuple(random.uniform(0.0, 0.5) for _ in range(replicas - 1))
    weights = [1.0, *others]
    random.shuffle(weights)
    return between(replace(free, routing=Routing(policy="weighted", weights=tuple(weights))), free, random)


def memory_growth(random: Random) -> World:
    world = lightly(promised(ordinary(random, whole=True), random), random)
    spec = world.engine
    free = spec.gpu.memory_bytes * (0.985 - spec.gpu_memory_utilization) - 1.2e9
    if free < 1.5e9:
        spec = replace(spec, gpu_memory_utilization=round(spec.gpu_memory_utilization - 3e9 / spec.gpu.memory_bytes, 3))
        free = spec.gpu.memory_bytes * (0.985 - spec.gpu_memory_utilization) - 1.2e9
    ends = WARM_UP_SECONDS + SECONDS + exp(random.uniform(log(150), log(3000)))
    leak = Leak(gpu=random.choice(_cards(world)), begins_with_bytes=0.1 * free, bytes_per_second=0.9 * free / ends)
    return replace(world, engine=spec, faults=(leak,))


def stalled(random: Random) -> World:
    world = lightly(promised(ordinary(random), random), random, 0.25, 0.75)
    at = WARM_UP_SECONDS + random.uniform(-10.0, 0.25 * SECONDS)
    until = at + random.uniform(1.0, 4.0) if random.random() < 0.15 else float("inf")
    return replace(world, faults=(Stall(replica=random.randrange(world.replicas), at=at, until=until),))


def idle(random: Random) -> World:
    return promised(ordinary(random), random)


def sleeping(random: Random) -> World:
    return replace(promised(ordinary(random), random), asleep=True)


STORIES: Mapping[str, Callable[[Random], World]] = {
    story.__name__: story
    for story in (
        healthy, kv_capacity, compute, memory_bandwidth, scheduler, host_cpu, interconnect, network, hardware,
        imbalance, memory_growth, stalled, idle, sleeping,
    )
}  # fmt: skip


def with_oddities(world: World, random: Random) -> World:
    """Things that look ill and cost next to nothing, where nothing of their kind is the story already."""
    faults: tuple[Fault, ...] = world.faults
    if not faults and not world.engine.mig and random.random() < 0.12:
        clock, cap = random.uniform(0.9, 0.97), (ThrottleReason.SW_POWER_CAP,)
        faults = (Throttle(gpu=random.choice(_cards(world)), clock_ratio=clock, temperature_celsius=66.0, reasons=cap),)
    if world.gateway == Gateway() and random.random() < 0.2:
        world = replace(world, gateway=Gateway(delay_seconds=random.uniform(0.01, 0.06), jitter_seconds=0.01))
    if world.host.cpu_count == 64 and world.host.quota_cores is None and random.random() < 0.3:
        cores = random.choice((32, 96, 128))
        busy = round(random.uniform(0.0, max(0.0, cores - cores_wanted(world) - 4)), 1)
        world = replace(world, host=replace(world.host, cpu_count=cores, other_cores=busy))
    return replace(world, faults=faults)


def _cards(world: World) -> tuple[str, ...]:
    return tuple(str(index) for index in range(world.replicas * world.engine.tensor_parallel_size))
