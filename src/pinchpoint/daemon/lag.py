"""How late the event loop is, all the time: what a metric tells. What is timed is watched closer, by who times it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

STEP_SECONDS = 0.1


class LoopLag:
    """Sleeps in small steps and keeps by how much the worst overslept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._worst = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure(), name="loop-lag")

    def stop(self) -> None:
        if self._task:
            self._task.cancel()

    def largest_since_last_asked(self) -> float:
        worst, self._worst = self._worst, 0.0
        return worst

    async def _measure(self) -> None:
        while True:
            before = self._clock()
            await asyncio.sleep(STEP_SECONDS)
            self._worst = max(self._worst, self._clock() - before - STEP_SECONDS)
