"""How late our own event loop was at a moment: a stamp that a busy loop took is later than what it stands for."""

import asyncio
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Self

TICK_SECONDS = 0.005
LATE_SECONDS = 0.002  # what timers miss by when all is well
KEPT = 1000  # late ticks: of the last probes, whatever their number

Lateness = Callable[[int, int], float]  # the largest in seconds, between two stamps; of one stamp, when they are equal

_TICK_NS, _LATE_NS = round(TICK_SECONDS * 1e9), round(LATE_SECONDS * 1e9)


def on_time(_begin_ns: int, _end_ns: int) -> float:
    """The lateness of a loop that was never late."""
    return 0.0


class LoopWatch:
    """``with watch:`` ticks while anybody is inside; one for all the probes that run at one time.

    Between two ticks the loop may have been away for as long as the second is late. Reads are stamped when it is back,
    and whether timers or reads come first then depends on the kind of loop: so what comes within one tick after counts.
    """

    def __init__(self, clock_ns: Callable[[], int] = perf_counter_ns) -> None:
        self._clock_ns = clock_ns
        self._inside = 0
        self._last_ns = 0
        self._late: deque[tuple[int, int]] = deque(maxlen=KEPT)  # from the tick before to the late one
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._inside += 1
        if self._inside == 1:
            self._last_ns = self._clock_ns()
            self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._inside -= 1
        if self._inside == 0 and self._timer is not None:
            self._note()
            self._timer.cancel()

    def lateness(self, begin_ns: int, end_ns: int) -> float:
        """The largest lateness of any stamp from ``begin_ns`` to ``end_ns``, in seconds."""
        worst = self._clock_ns() - self._last_ns if self._inside and end_ns > self._last_ns else 0
        for from_ns, to_ns in reversed(self._late):
            if to_ns + _TICK_NS < begin_ns:
                break
            if from_ns < end_ns:
                worst = max(worst, to_ns - from_ns)
        return max(0, worst - _TICK_NS) / 1e9

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._note()
        self._wait()

    def _note(self) -> None:
        now_ns = self._clock_ns()
        if now_ns - self._last_ns > _TICK_NS + _LATE_NS:
            self._late.append((self._last_ns, now_ns))
        self._last_ns = now_ns
