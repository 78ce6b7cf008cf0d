"""How late the event loop is: a late loop means late stamps, so a probe that ran meanwhile is not to be trusted."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

STEP_SECONDS = 0.1
KEPT = 2048  # steps, about three minutes: longer than any probe


class LoopLag:
    """Sleeps in small steps and keeps by how much each overslept."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._steps: deque[tuple[float, float]] = deque(maxlen=KEPT)
        self._worst = 0.0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._measure(), name="loop-lag")

    def stop(self) -> None:
        if self._task:
            self._task.cancel()

    def since(self, at: float) -> float:
        """The largest lag, in seconds, of any step that ended after ``at``."""
        worst = 0.0
        for ended, lag in reversed(self._steps):
            if ended < at:
                break
            worst = max(worst, lag)
        return worst

    def largest_since_last_asked(self) -> float:
        worst, self._worst = self._worst, 0.0
        return worst

    async def _measure(self) -> None:
        while True:
            before = self._clock()
            await asyncio.sleep(STEP_SECONDS)
            after = self._clock()
            lag = max(0.0, after - before - STEP_SECONDS)
            self._steps.append((after, lag))
            self._worst = max(self._worst, lag)
