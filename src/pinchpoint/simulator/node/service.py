"""One world, played in virtual time: clients, gateway, balancer, engines, their cards and their host.

Time moves only by ``advance_to``, and the same world gives the same run to the last token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from random import Random

from pinchpoint.simulator.engine.loop import SimulatedEngine
from pinchpoint.simulator.engine.request import Request
from pinchpoint.simulator.engine.spec import EngineSpec
from pinchpoint.simulator.engine.work import Work
from pinchpoint.simulator.node.balancer import Balancer
from pinchpoint.simulator.node.cards import SimulatedCard
from pinchpoint.simulator.node.client import Sent, Way
from pinchpoint.simulator.node.host import FrontEnd, SimulatedHost
from pinchpoint.simulator.node.ills import Ills
from pinchpoint.simulator.node.probing import SimulatedProber
from pinchpoint.simulator.node.traffic import Traffic
from pinchpoint.simulator.world import World
from pinchpoint.snapshot import EngineFacts, GpuReading, HostReading, PeerLink, ProbeReading

SAMPLE_SECONDS = 0.5  # how often host and cards are looked at, and faults begin and end
_BACK_SECONDS = 0.002  # a token's way back through a gateway that passes it on
_CLOSED_LOOP_SECONDS = 0.02  # a client's next question reaches another replica at most so much late


class Service:
    """``sent`` holds every client's request, our own probes apart.

    ``engines`` are its replicas; those in ``dead`` have ended.
    """

    def __init__(self, world: World) -> None:
        self.world, self.now = world, 0.0
        seed = world.seed
        self.engines = tuple(
            SimulatedEngine(_spec(world, index), f"{seed}/{index}", host=world.host) for index in range(world.replicas)
        )
        self.cards = {
            gpu: SimulatedCard(gpu, engine.spec, _random(seed, f"card {gpu}"))
            for engine in self.engines
            for gpu in engine.spec.gpus
        }
        self.sent: list[Sent] = []
        self._outside: dict[Request, tuple[int, Callable[[], None]]] = {}
        self._traffic = Traffic(f"{seed}/traffic", world.workload, world.engine.max_model_len)
        self._way = Way(world.gateway, _random(seed, "gateway"))
        self._balancer = Balancer(world.routing, world.replicas, _random(seed, "balancer"))
        self._front_ends = tuple(FrontEnd(world.host) for _ in self.engines)
        self._host = SimulatedHost(world.host, _random(seed, "host"))
        probes = replace(world.probes, every_seconds=0.0) if world.asleep else world.probes
        self._prober = SimulatedProber(probes, _random(seed, "prober"))
        self._ills = Ills(world.faults, asleep=world.asleep)
        self._done = [Work() for _ in self.engines]
        self.sampled_at = -SAMPLE_SECONDS
        self._sample()

    @property
    def dead(self) -> frozenset[int]:
        return frozenset(self._ills.dead)

    @property
    def living(self) -> tuple[int, ...]:
        """The replicas that take requests, by index."""
        return tuple(index for index in range(len(self.engines)) if index not in self._ills.dead)

    @property
    def host(self) -> HostReading:
        """As of the last sample, like the cards."""
        return self._host.reading

    @property
    def links(self) -> tuple[PeerLink, ...]:
        """Within each replica its link; between two of them, the same board where that is NVLink, else the host."""
        spec = self.world.engine
        own = {frozenset(pair) for e in self.engines for pair in combinations(e.spec.gpus, 2)}
        return tuple(
            PeerLink(gpu, peer, *_between(spec.link, within=frozenset((gpu, peer)) in own))
            for gpu, peer in combinations(self.cards, 2)
        )

    @property
    def next_event_at(self) -> float:
        """When something will happen by itself, a sample included."""
        engines = min(engine.next_event_at for engine in self.engines)
        return min(self.sampled_at + SAMPLE_SECONDS, engines, self._traffic.next_at, self._prober.next_at)

    def facts(self) -> EngineFacts:
        """What an operator would write down about the whole service."""
        return replace(self.engines[0].spec.facts(), data_parallel_size=self.world.replicas)

    def gpu_readings(self, at: float) -> tuple[GpuReading, ...]:
        return tuple(card.reading(at) for card in self.cards.values())

    def probes(self) -> tuple[ProbeReading, ...]:
        """Those that have ended."""
        return self._prober.readings(self.now)

    def submit(self, request: Request, on_lost: Callable[[], None] = lambda: None) -> None:
        """A request from outside the simulated traffic, on its way now.

        ``on_lost`` is called when nobody takes it, or when the replica that did ends before it.
        """
        sent = self._send(request, self.now)
        if sent.refused:
            on_lost()
        else:
            self._outside[request] = sent.replica, on_lost
            request.on_finish = self._leave

    def abort(self, request: Request) -> None:
        """The client of a ``submit``ted request has gone."""
        if request in self._outside:
            replica, _ = self._outside.pop(request)
            self.engines[replica].abort(request)

    def forget(self) -> None:
        """Drop what is known of requests that have ended: a service that is played for days holds only open ones."""
        self.sent = [sent for sent in self.sent if not sent.request.finished]

    def use(self, world: World) -> None:
        """Play another world from now on, on the same engines: other clients, gateway, routing, CPUs or faults.

        Engine, replicas, probes and what a step costs its host must be those of this one.
        """
        ours = self.world
        assert (world.engine, world.replicas, world.probes) == (ours.engine, ours.replicas, ours.probes)
        assert world.host.step_seconds == ours.host.step_seconds
        assert world.host.request_seconds == ours.host.request_seconds
        if world.workload != self.world.workload:
            self._traffic.use(world.workload, self.now)
            for sent in self.sent:
                self.engines[sent.replica].abort(sent.request)
            self.sent = []
        self.world = world
        self._ills = Ills(world.faults, asleep=world.asleep, began=self.now)
        for card in self.cards.values():
            card.throttle, card.neighbour_bytes, card.lost = None, 0.0, False
        self._host.use(world.host)
        self._front_ends = tuple(FrontEnd(world.host) for _ in self.engines)
        self._way = Way(world.gateway, _random(world.seed, "gateway"))
        self._balancer = Balancer(world.routing, world.replicas, _random(world.seed, "balancer"))

    def advance_to(self, until: float) -> None:
        """Play up to ``until``; time never goes back."""
        while self.sampled_at + SAMPLE_SECONDS <= until:
            self._play(self.sampled_at + SAMPLE_SECONDS)
            self._sample()
        self._play(until)

    def _play(self, until: float) -> None:
        closed = self.world.workload.clients > 0
        while True:
            due = min(self._traffic.next_at, self._prober.next_at, until)
            if due > self.now:
                self._run(
                    min(due, self.now + _CLOSED_LOOP_SECONDS) if closed and len(self.engines) > 1 else due, closed
                )
                continue
            if self._prober.next_at <= self.now:
                at, request = self._prober.next_at, self._prober.request()
                self._prober.sent(self._send(request, at))
            elif self._traffic.next_at <= self.now:
                at, request = self._traffic.next_at, self._traffic.pop()
                request.on_finish = self._traffic.answered if request.source is not None else None
                sent = self._send(request, at)
                self.sent.append(sent)
                if sent.refused:
                    self._traffic.failed(request, at)
            elif self.now >= until:
                return

    def _run(self, due: float, closed: bool) -> None:
        """All engines up to ``due``; of a closed loop, no further than to the next question."""
        for engine in self.engines:
            while engine.now < due:
                engine.run_until(due, stop_on_finish=closed)
                due = min(due, max(self.now, self._traffic.next_at))
        self.now = max(self.now, due)

    def _send(self, request: Request, at: float) -> Sent:
        """On its way in: the gateway, the balancer, the front end of a replica."""
        way = self._way.seconds()
        buffers = self.world.gateway.buffers
        if not self.living:
            request.finished = True
            return Sent(at, request, 0, 0.0, buffers, refused=True)
        index = self._balancer.pick(self.engines, self.living)
        request.arrived_at = at + way
        request.queued_at = self._front_ends[index].done_at(request.arrived_at, self._host.cpu_share)
        self.engines[index].submit(request)
        return Sent(at, request, index, min(way, _BACK_SECONDS), buffers)

    def _leave(self, request: Request, _: float) -> None:
        self._outside.pop(request, None)

    def _sample(self) -> None:
        since, self.sampled_at = self.sampled_at, self.now
        seconds = self.now - since
        front = sum(end.busy_seconds(since, self.now) for end in self._front_ends)
        self._host.sample(self.now, self.engines, front / seconds)
        for index, engine in enumerate(self.engines):
            work = engine.work()
            done, self._done[index] = work.since(self._done[index]), work
            for gpu in engine.spec.gpus:
                self.cards[gpu].advance(seconds, done)
        dead = self.dead
        self._ills.apply(self.now, self.engines, self.cards)
        self._bury(self.dead - dead)
        for sent in self._prober.cut_off(self.now, self.dead):
            self.engines[sent.replica].abort(sent.request)

    def _bury(self, replicas: frozenset[int]) -> None:
        """Their processes have ended, and with them what they worked on."""
        if not replicas:
            return
        for sent in self.sent:
            if sent.replica in replicas and not sent.request.finished:
                self.engines[sent.replica].abort(sent.request)
                self._traffic.failed(sent.request, self.now)
        for request, (replica, on_lost) in list(self._outside.items()):
            if replica in replicas:
                self.abort(request)
                on_lost()


def play(world: World, seconds: float, warm_up_seconds: float = 0.0) -> Service:
    """The world after ``warm_up_seconds`` and ``seconds`` more."""
    service = Service(world)
    service.advance_to(warm_up_seconds + seconds)
    return service


def _spec(world: World, index: int) -> EngineSpec:
    first, size = int(world.engine.gpus[0]), world.engine.tensor_parallel_size
    gpus = tuple(str(first + index * size + rank) for rank in range(size))
    name = world.engine.name if world.replicas == 1 else f"{world.engine.name}-{index}"
    return replace(world.engine, name=name, gpus=gpus)


def _between(link: str, *, within: bool) -> tuple[str, str]:
    """The word of a pair of cards, and whether they read each other's memory."""
    if link.startswith("NV") or within:
        return link, "ok" if link.startswith(("NV", "PIX", "PXB")) else "chipset_not_supported"
    return "SYS", "chipset_not_supported"


def _random(seed: int, what: str) -> Random:
    return Random(f"{seed}/{what}")  # noqa: S311 - a seeded model, no secret
