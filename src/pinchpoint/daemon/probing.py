"""Keeps a job per probe target: who is asked when, and that nobody is paid more than the operator has allowed.

A hosted target is asked only with its admission's leave, and between two probes by a request that costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pinchpoint.config import Settings
from pinchpoint.config.state import state_directory
from pinchpoint.daemon.board import Board
from pinchpoint.scheduler import Scheduler
from pinchpoint.snapshot import Placement, ProbeLiveness, ProbeReading, ProbeSkip
from pinchpoint.sources.probe import Prober
from pinchpoint.sources.probe.settings import ProbeTargetSettings
from pinchpoint.sources.probe.spend import Admission, Purse


@dataclass(slots=True, eq=False)
class _Watched:
    """One target. ``admission`` is ``None`` for a local one, which costs nothing."""

    target: ProbeTargetSettings
    prober: Prober
    admission: Admission | None
    is_probing: bool = False
    is_alive: bool | None = None


class Probing:
    """The jobs of probes, and the one purse that they are paid from."""

    def __init__(
        self,
        scheduler: Scheduler,
        board: Board,
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._scheduler = scheduler
        self._board = board
        self._clock = clock
        self._wall = wall
        self._watched: dict[str, _Watched] = {}
        self._purse: Purse | None = None

    def follow(self, settings: Settings) -> list[Prober]:
        """Matches the jobs with the settings; a target that stays as it is goes on, and what held it back is forgotten.

        Returns the probers that are no longer wanted, for their connections to be closed.
        """
        gone: list[Prober] = []
        wanted = {target.name: target for target in settings.probes.targets}
        for name, watched in tuple(self._watched.items()):
            if wanted.get(name) != watched.target:
                self._end(name)
                gone.append(self._watched.pop(name).prober)
        self._board.expect_probes((target.name, target.placement) for target in wanted.values())
        purse, caps = self._purse_in(state_directory(settings)), settings.probes.caps.caps()
        for watched in self._watched.values():
            if watched.admission is not None:
                watched.admission.change(caps, purse)
        for name, target in wanted.items():
            if name not in self._watched:
                admission = Admission(target, caps, purse) if target.placement is Placement.HOSTED else None
                self._begin(_Watched(target, Prober(target, self._clock), admission))
        return gone

    def abandon(self) -> None:
        """Cancels probes under way: a generation may take a minute, and nobody waits for its result any more."""
        for name in self._watched:
            self._end(name)

    async def close(self) -> None:
        """Ends every connection. The jobs are the scheduler's to end, before."""
        for watched in self._watched.values():
            await watched.prober.close()
        if self._purse is not None:
            self._purse.close()

    def _purse_in(self, folder: Path | None) -> Purse:
        """The same one as before, as long as its folder is: a day that has begun by its clock stays begun."""
        if self._purse is None or self._purse.folder != folder:
            if self._purse is not None:
                self._purse.close()
            self._purse = Purse(folder, self._wall, self._clock)
        return self._purse

    def _begin(self, watched: _Watched) -> None:
        target, name = watched.target, watched.target.name
        self._watched[name] = watched
        self._scheduler.every(
            f"probe/{name}",
            target.interval_seconds,
            partial(self._probe, watched),
            first_run_at_once=True,
            on_skip=partial(self._board.skip_probe, name, ProbeSkip.OVERLAP),
        )
        if watched.admission is None:
            return
        self._board.expect_spending(name, priced=target.price is not None)
        if target.liveness_interval_seconds is not None:
            run = partial(self._look, watched, watched.admission)
            self._scheduler.every(f"liveness/{name}", target.liveness_interval_seconds, run, first_run_at_once=True)

    def _end(self, name: str) -> None:
        self._scheduler.cancel(f"probe/{name}")
        self._scheduler.cancel(f"liveness/{name}")

    async def _probe(self, watched: _Watched) -> None:
        watched.is_probing = True
        try:
            if watched.admission is None:
                await self._measure(watched)
            else:
                await self._measure_for_money(watched, watched.admission)
        finally:
            watched.is_probing = False

    async def _measure(self, watched: _Watched) -> ProbeReading:
        started = self._clock()
        reading = await watched.prober.probe()
        self._board.put_probe(reading, self._clock() - started)
        return reading

    async def _measure_for_money(self, watched: _Watched, admission: Admission) -> None:
        name, answer = watched.target.name, await admission.ask(self._clock())
        self._board.put_budget(name, admission.left)
        if isinstance(answer, ProbeSkip):
            self._board.skip_probe(name, answer)
            return
        spent = answer.spent  # and so it stays when this ends in the middle
        try:
            reading = await self._measure(watched)
            spent = await admission.settle(answer, reading, self._clock())
        finally:
            self._board.pay_for_probe(name, spent)
        self._board.put_budget(name, admission.left)
        if _is_alive(reading):
            self._live(watched, up=True)

    async def _look(self, watched: _Watched, admission: Admission) -> None:
        """A server that is back is asked at the next interval, whatever pause its failures had earned."""
        if watched.is_probing:  # which says more, and must not be disturbed
            return
        was_alive, up = watched.is_alive, _is_alive(await watched.prober.liveness())
        if up and was_alive is False:
            admission.alive()
        self._live(watched, up=up)

    def _live(self, watched: _Watched, *, up: bool) -> None:
        watched.is_alive = up
        self._board.put_liveness(watched.target.name, up=up)


def _is_alive(reading: ProbeReading | ProbeLiveness) -> bool:
    """Any answer but a server's error is a sign of life: whether key and model are good is the probe's to say."""
    return reading.http_status is not None and reading.http_status < 500
